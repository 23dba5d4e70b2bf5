use std::fs;
use std::os::unix::fs::PermissionsExt;

use image::{GenericImageView, Rgba, RgbaImage};

use super::*;

const RED: [u8; 3] = [220, 30, 20];
const BLUE: [u8; 3] = [20, 40, 200];

fn sample(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("samples")
        .join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn fresh() -> (tempfile::TempDir, Pictures) {
    let home = tempfile::tempdir().unwrap();
    let pictures = Pictures::at(&home.path().join("attachments"));
    (home, pictures)
}

fn seen(bytes: &[u8]) -> image::DynamicImage {
    image::load_from_memory(bytes).unwrap()
}

fn near(pixel: Rgba<u8>, colour: [u8; 3]) -> bool {
    let far = |at: usize| pixel.0[at].abs_diff(colour[at]);
    (0..3).all(|at| far(at) < 40)
}

/// Noise, which no encoder makes small.
fn noise(width: u32, height: u32, alpha: bool) -> Vec<u8> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        u8::try_from(state >> 24).unwrap()
    };
    let mut image = RgbaImage::new(width, height);
    for pixel in image.pixels_mut() {
        let last = if alpha { 128 } else { 255 };
        *pixel = Rgba([next(), next(), next(), last]);
    }
    png(&image.into())
}

fn png(image: &image::DynamicImage) -> Vec<u8> {
    let mut bytes = Cursor::new(vec![]);
    image.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

use std::io::Cursor;

#[test]
fn every_kind_is_taken_in_and_looks_as_it_did() {
    let (_home, pictures) = fresh();
    for (name, media_type) in [
        ("plain.jpg", "image/jpeg"),
        ("progressive.jpg", "image/jpeg"),
        ("cmyk.jpg", "image/jpeg"),
        ("lossy.webp", "image/jpeg"),
        ("lossless.webp", "image/png"),
        ("moving.webp", "image/png"),
        ("moving.gif", "image/png"),
        ("moving.png", "image/png"),
        ("palette.png", "image/png"),
        ("rgba16.png", "image/png"),
        ("profile.png", "image/png"),
    ] {
        let put = pictures.put(&sample(name), Some(name)).unwrap();
        assert_eq!((put.width, put.height), (24, 12), "{name}");
        assert_eq!(put.media_type, media_type, "{name}");
        assert_eq!(put.name.as_deref(), Some(name));
        assert_eq!(put.original_dimensions, None);
        let bytes = pictures.read(&put.attachment_id).unwrap();
        assert_eq!(bytes.len() as u64, put.bytes, "{name}");
        let image = seen(&bytes);
        assert!(near(image.get_pixel(3, 6), RED), "{name}");
        assert!(near(image.get_pixel(20, 6), BLUE), "{name}");
        assert!(!image.color().has_alpha(), "{name}");
    }
    let grey = pictures.put(&sample("grey16.png"), None).unwrap();
    let image = seen(&pictures.read(&grey.attachment_id).unwrap());
    assert_eq!(image.get_pixel(3, 6).0[0], 0xff);
    assert_eq!(image.get_pixel(20, 6).0[0], 0x12);
}

#[test]
fn a_picture_stands_upright_and_says_nothing_of_where_it_was_taken() {
    let (_home, pictures) = fresh();
    let turned = sample("turned.jpg");
    assert!(turned.windows(11).any(|word| word == b"SECRETPLACE"));
    let put = pictures.put(&turned, None).unwrap();
    assert_eq!((put.width, put.height), (12, 24));
    let bytes = pictures.read(&put.attachment_id).unwrap();
    assert!(near(seen(&bytes).get_pixel(6, 4), RED));
    assert!(near(seen(&bytes).get_pixel(6, 20), BLUE));
    assert!(!bytes.windows(11).any(|word| word == b"SECRETPLACE"));
    let small = Bounds {
        max_pixels: Some(72),
        max_bytes: None,
    };
    let variant = pictures.render(&put.attachment_id, small).unwrap();
    assert_eq!((variant.width, variant.height), (6, 12));
}

#[test]
fn nothing_that_hangs_behind_a_picture_is_kept() {
    let (_home, pictures) = fresh();
    let plain = pictures.put(&sample("palette.png"), None).unwrap();
    let mut both = sample("palette.png");
    both.extend_from_slice(b"PK\x03\x04<script>alert(1)</script>");
    let put = pictures.put(&both, None).unwrap();
    assert_eq!(put.attachment_id, plain.attachment_id);
}

#[test]
fn what_is_transparent_stays_so() {
    let (_home, pictures) = fresh();
    for name in ["clear.png", "clear.webp"] {
        let put = pictures.put(&sample(name), None).unwrap();
        assert_eq!(put.media_type, "image/png");
        let bounds = Bounds {
            max_pixels: Some(72),
            max_bytes: None,
        };
        let variant = pictures.render(&put.attachment_id, bounds).unwrap();
        assert!(variant.alpha, "{name}");
        let image = seen(&variant.bytes);
        assert_eq!(image.dimensions(), (12, 6));
        assert_eq!(image.get_pixel(1, 3).0[3], 0);
        assert!(
            near(image.get_pixel(4, 3), RED),
            "{:?}",
            image.get_pixel(4, 3)
        );
    }
}

#[test]
fn a_hidden_colour_does_not_bleed_into_the_edge_of_what_is_seen() {
    let (_home, pictures) = fresh();
    let mut image = RgbaImage::from_pixel(24, 12, Rgba([0, 255, 0, 0]));
    for (x, _, pixel) in image.enumerate_pixels_mut() {
        if x >= 5 {
            *pixel = Rgba([RED[0], RED[1], RED[2], 255]);
        }
    }
    let put = pictures.put(&png(&image.into()), None).unwrap();
    let bounds = Bounds {
        max_pixels: Some(72),
        max_bytes: None,
    };
    let variant = pictures.render(&put.attachment_id, bounds).unwrap();
    let edge = seen(&variant.bytes).get_pixel(2, 3);
    assert!((1..255).contains(&edge.0[3]), "{edge:?}");
    assert!(near(edge, RED), "{edge:?}");
}

#[test]
fn what_claims_to_be_vast_is_refused_before_it_is_decoded() {
    let (_home, pictures) = fresh();
    for name in ["vast.png", "vast.gif", "vast.jpg", "vast.webp"] {
        let error = pictures.put(&sample(name), None).unwrap_err();
        assert!(
            matches!(error, Error::TooManyPixels { .. } | Error::Broken { .. }),
            "{name}: {error}"
        );
        assert_eq!(error.code(), "LIMIT", "{name}: {error}");
    }
    let error = pictures.put(&vec![0; (32 << 20) + 1], None).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
}

#[test]
fn what_is_no_picture_is_refused_by_its_content_whatever_it_is_called() {
    let (_home, pictures) = fresh();
    for (content, said) in [
        (&b""[..], "it is empty"),
        (b"P", "it is text"),
        (b"# notes", "it is text"),
        (b"\0\x01\x02", "this is no picture"),
        (b"<svg xmlns='x'/>", "SVG"),
        (b"%PDF-1.7", "PDF"),
        (b"BM....", "BMP"),
        (b"\0\0\0\x18ftypheic", "HEIC"),
    ] {
        let error = pictures.put(content, Some("a.png")).unwrap_err();
        assert_eq!(error.code(), "INVALID");
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn a_picture_that_is_cut_anywhere_is_refused_or_is_the_same_picture() {
    let (_home, pictures) = fresh();
    for name in [
        "plain.jpg",
        "progressive.jpg",
        "palette.png",
        "moving.gif",
        "lossy.webp",
    ] {
        let whole = sample(name);
        let put = pictures.put(&whole, None).unwrap();
        for end in 0..whole.len() {
            match pictures.put(&whole[..end], None) {
                Err(error) => assert_eq!(error.code(), "INVALID", "{name} {end}: {error}"),
                Ok(cut) => assert_eq!(cut.attachment_id, put.attachment_id, "{name} {end}"),
            }
        }
    }
}

#[test]
fn no_damaged_byte_makes_a_decoder_panic_or_a_picture_that_cannot_be_read() {
    let (_home, pictures) = fresh();
    for name in [
        "plain.jpg",
        "progressive.jpg",
        "turned.jpg",
        "cmyk.jpg",
        "palette.png",
        "clear.png",
        "grey16.png",
        "moving.gif",
        "moving.png",
        "lossy.webp",
        "lossless.webp",
        "moving.webp",
    ] {
        let whole = sample(name);
        for at in 0..whole.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] ^= flip;
                match decode::decode(&damaged) {
                    Ok(decoded) => assert!(decoded.seen().pixels() <= decode::MAX_PIXELS),
                    Err(error) => {
                        let said = error.to_string();
                        assert!(!said.contains("gave up"), "{name} {at} {flip}: {said}");
                        assert!(!said.contains('\n'), "{said}");
                    }
                }
            }
        }
    }
    drop(pictures);
}

#[test]
fn the_same_bounds_give_the_same_variant_and_it_is_within_them() {
    let (home, pictures) = fresh();
    let put = pictures.put(&noise(900, 700, false), None).unwrap();
    for (pixels, bytes) in [
        (Some(640_000), Some(1 << 20)),
        (Some(262_144), Some(100_000)),
        (None, Some(20_000)),
        (Some(1), None),
        (Some(10), Some(200)),
    ] {
        let bounds = Bounds {
            max_pixels: pixels,
            max_bytes: bytes,
        };
        let variant = pictures.render(&put.attachment_id, bounds).unwrap();
        let area = u64::from(variant.width) * u64::from(variant.height);
        assert!(
            pixels.is_none_or(|most| area <= u64::from(most)),
            "{bounds:?}"
        );
        assert!(
            bytes.is_none_or(|most| variant.bytes.len() <= most as usize),
            "{bounds:?}"
        );
        let image = seen(&variant.bytes);
        assert_eq!(image.dimensions(), (variant.width, variant.height));
        // Again, by another process, from the cache and without it.
        for remove in [false, true] {
            if remove {
                fs::remove_dir_all(home.path().join("attachments/v1/request-images")).unwrap();
            }
            let other = Pictures::at(&home.path().join("attachments"));
            assert_eq!(*other.variant(&variant.id).unwrap(), *variant, "{bounds:?}");
        }
    }
}

#[test]
fn a_picture_within_the_bounds_is_sent_as_it_is_and_takes_no_second_file() {
    let (home, pictures) = fresh();
    let put = pictures.put(&sample("palette.png"), None).unwrap();
    let variant = pictures
        .render(&put.attachment_id, Bounds::default())
        .unwrap();
    assert_eq!(variant.id, put.attachment_id.as_str());
    assert_eq!(variant.bytes, pictures.read(&put.attachment_id).unwrap());
    assert!(!home.path().join("attachments/v1/request-images").exists());
}

#[test]
fn bounds_that_no_picture_fits_are_refused() {
    let (_home, pictures) = fresh();
    let clear = pictures.put(&noise(40, 40, true), None).unwrap();
    let bounds = Bounds {
        max_pixels: None,
        max_bytes: Some(20),
    };
    let error = pictures.render(&clear.attachment_id, bounds).unwrap_err();
    assert!(matches!(error, Error::NoRoom { bytes: 20 }), "{error}");
}

#[test]
fn a_large_picture_is_kept_smaller_and_says_what_it_was() {
    let (_home, pictures) = fresh();
    let long = png(&image::DynamicImage::new_rgb8(16_000, 10));
    let put = pictures.put(&long, None).unwrap();
    assert_eq!((put.width, put.height), (8000, 5));
    let json = put.to_json();
    assert!(
        json.ends_with(r#""originalDimensions":{"width":16000,"height":10}}"#),
        "{json}"
    );
    // A line of pixels stays one.
    let line = pictures
        .put(&png(&image::DynamicImage::new_rgb8(5000, 1)), None)
        .unwrap();
    let bounds = Bounds {
        max_pixels: Some(16),
        max_bytes: None,
    };
    let variant = pictures.render(&line.attachment_id, bounds).unwrap();
    assert_eq!(variant.height, 1);
    assert!(variant.width <= 16);
}

#[test]
fn the_log_gets_what_it_needs_and_no_folder_of_the_name() {
    let (_home, pictures) = fresh();
    let put = pictures
        .put(&sample("palette.png"), Some("/home/me/a\n\u{1b}b.png"))
        .unwrap();
    assert_eq!(put.name.as_deref(), Some("ab.png"));
    let json: serde_json::Value = serde_json::from_str(&put.to_json()).unwrap();
    let keys: Vec<_> = json.as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        keys,
        [
            "attachmentId",
            "mediaType",
            "bytes",
            "width",
            "height",
            "name"
        ]
    );
    assert_eq!(
        pictures
            .put(&sample("palette.png"), Some("..//"))
            .unwrap()
            .name,
        None
    );
}

#[test]
fn files_are_the_persons_alone_and_are_where_upstream_has_them() {
    let (home, pictures) = fresh();
    let put = pictures.put(&noise(30, 30, false), None).unwrap();
    let bounds = Bounds {
        max_pixels: Some(100),
        max_bytes: None,
    };
    pictures.render(&put.attachment_id, bounds).unwrap();
    let hex = put.attachment_id.as_str().strip_prefix("sha256:").unwrap();
    let root = home.path().join("attachments");
    let object = root.join("v1/objects").join(&hex[..2]).join(hex);
    let variant = root
        .join("v1/request-images")
        .join(&hex[..2])
        .join(format!("{hex}.p100.v1"));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for file in [&object, &variant] {
        assert_eq!(mode(file), 0o600, "{}", file.display());
        let mut folder = file.parent().unwrap();
        while folder != home.path() {
            assert_eq!(mode(folder), 0o700, "{}", folder.display());
            folder = folder.parent().unwrap();
        }
    }
}

#[test]
fn a_damaged_object_is_named_and_never_shown_and_attaching_it_again_mends_it() {
    let (home, pictures) = fresh();
    let put = pictures.put(&sample("palette.png"), None).unwrap();
    let hex = put.attachment_id.as_str().strip_prefix("sha256:").unwrap();
    let path = home
        .path()
        .join("attachments/v1/objects")
        .join(&hex[..2])
        .join(hex);
    fs::write(&path, sample("plain.jpg")).unwrap();
    let error = pictures
        .render(&put.attachment_id, Bounds::default())
        .unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    assert!(error.to_string().contains(hex), "{error}");
    pictures.put(&sample("palette.png"), None).unwrap();
    pictures
        .render(&put.attachment_id, Bounds::default())
        .unwrap();
    fs::remove_file(&path).unwrap();
    let error = pictures.read(&put.attachment_id).unwrap_err();
    assert!(matches!(error, Error::Missing { .. }), "{error}");
}

#[test]
fn a_variant_that_is_damaged_is_made_again() {
    let (home, pictures) = fresh();
    let put = pictures.put(&noise(30, 30, false), None).unwrap();
    let bounds = Bounds {
        max_pixels: Some(100),
        max_bytes: None,
    };
    let variant = pictures.render(&put.attachment_id, bounds).unwrap();
    let hex = put.attachment_id.as_str().strip_prefix("sha256:").unwrap();
    let folder = home
        .path()
        .join("attachments/v1/request-images")
        .join(&hex[..2]);
    let file = folder.join(format!("{hex}.p100.v1"));
    let mut bytes = fs::read(&file).unwrap();
    // Another variant's file under this one's name is none of this one.
    let other = Bounds {
        max_pixels: Some(50),
        max_bytes: None,
    };
    pictures.render(&put.attachment_id, other).unwrap();
    fs::copy(folder.join(format!("{hex}.p50.v1")), &file).unwrap();
    let again = Pictures::at(&home.path().join("attachments"));
    assert_eq!(*again.render(&put.attachment_id, bounds).unwrap(), *variant);
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, &bytes).unwrap();
    let again = Pictures::at(&home.path().join("attachments"));
    assert_eq!(*again.render(&put.attachment_id, bounds).unwrap(), *variant);
}

#[test]
fn only_one_spelling_names_a_variant_and_none_names_a_file() {
    let (_home, pictures) = fresh();
    let put = pictures.put(&sample("palette.png"), None).unwrap();
    let id = put.attachment_id.as_str();
    for bad in [
        "",
        "x",
        "sha256:0",
        "../../etc/passwd",
        &id[..70],
        &format!("{id}.p01"),
        &format!("{id}.b1.p1"),
        &format!("{id}.p1.p1"),
        &format!("{id}/.."),
        &format!("{id}.p"),
        &format!("{id}.p99999999999"),
        &id.to_uppercase(),
        &format!("{id}."),
    ] {
        let error = pictures.variant(bad).unwrap_err();
        assert!(matches!(error, Error::BadVariant(_)), "{bad}: {error}");
    }
    let bounds = Bounds {
        max_pixels: Some(1),
        max_bytes: Some(2),
    };
    assert_eq!(
        variant::parse(&variant::name(&put.attachment_id, bounds)).unwrap(),
        (put.attachment_id, bounds)
    );
}

#[test]
fn variants_are_held_up_to_a_bound_the_newest_ones() {
    let (_home, pictures) = fresh();
    let variant = |at: usize| {
        Arc::new(Variant {
            id: at.to_string(),
            media_type: "image/png",
            bytes: vec![0; 10 << 20].into(),
            width: 1,
            height: 1,
            alpha: false,
        })
    };
    for at in 0..3 {
        pictures.hold(&variant(at));
    }
    assert!(pictures.recall("0").is_some());
    pictures.hold(&variant(3));
    assert!(pictures.recall("1").is_none());
    for at in ["0", "2", "3"] {
        assert!(pictures.recall(at).is_some(), "{at}");
    }
}
