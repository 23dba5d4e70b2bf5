//! Signatures, downgrades, a lock and packages that somebody changed.

use std::path::Path;

use crate::support::{Scratch, Signer, counter};

fn signed(scratch: &Scratch, signer: &Signer, version: &str) {
    let bytes = counter(version);
    scratch.put("counter.wasm", &bytes);
    sign(
        &scratch.work().join("counter.wasm"),
        signer,
        &bytes,
        version,
    );
}

fn sign(path: &Path, signer: &Signer, bytes: &[u8], version: &str) {
    let beside = format!("{}.minisig", path.display());
    std::fs::write(
        beside,
        signer.sign(bytes, &format!("acme:counter {version}")),
    )
    .unwrap();
}

#[test]
fn a_signature_counts_only_by_the_key_that_a_person_gave() {
    let scratch = Scratch::new();
    let (acme, other) = (Signer::new(0x11), Signer::new(0x22));
    signed(&scratch, &acme, "1.0.0");
    let key = acme.public();
    // By another key than the one that is asked for: what was expected, what came.
    scratch
        .plugin(["add", "--yes", "--key", &other.public(), "counter.wasm"])
        .refused(&[&acme.id(), &other.id(), "expected"]);
    // Nobody vouches for it: it is said, and it counts for nothing.
    let (_, added) = scratch.plugin_json(["add", "--yes", "counter.wasm"]);
    assert!(added["plugin"]["signature"].is_null());
    scratch.plugin(["remove", "acme:counter"]).done();
    // By the key of a file, and in its text.
    let file = scratch.write("acme.pub", &format!("untrusted comment: acme\n{key}\n"));
    let added = scratch
        .plugin([
            "add",
            "--yes",
            "--key",
            &file.display().to_string(),
            "counter.wasm",
        ])
        .done();
    assert!(
        added
            .stdout
            .contains(&format!("by key {} (acme:counter 1.0.0)", acme.id())),
        "{added:?}"
    );
    let (_, list) = scratch.plugin_json(["list"]);
    assert_eq!(list["plugins"][0]["signature"]["key"], key.as_str());
    scratch.plugin(["verify"]).done();
}

#[test]
fn a_signature_is_of_its_bytes_and_one_that_is_asked_for_must_be_there() {
    let scratch = Scratch::new();
    let acme = Signer::new(0x11);
    scratch.put("counter.wasm", &counter("1.0.0"));
    let key = acme.public();
    scratch
        .plugin(["add", "--yes", "--key", &key, "counter.wasm"])
        .refused(&["asked for with --key", "counter.wasm.minisig"]);
    sign(
        &scratch.work().join("counter.wasm"),
        &acme,
        b"other bytes",
        "1.0.0",
    );
    scratch
        .plugin(["add", "--yes", "--key", &key, "counter.wasm"])
        .refused(&["did not sign these bytes"]);
    scratch.write("counter.wasm.minisig", "no signature\n");
    scratch
        .plugin(["add", "--yes", "counter.wasm"])
        .refused(&["minisig", "signature"]);
    assert!(scratch.lock_text().is_empty());
}

#[test]
fn what_was_signed_stays_signed_by_that_key_and_never_goes_back() {
    let scratch = Scratch::new();
    let (acme, thief) = (Signer::new(0x11), Signer::new(0x22));
    signed(&scratch, &acme, "1.1.0");
    scratch
        .plugin(["add", "--yes", "--key", &acme.public(), "counter.wasm"])
        .done();
    let lock = scratch.lock_text();

    signed(&scratch, &thief, "1.2.0");
    scratch.plugin(["update", "--yes"]).refused(&[
        &acme.id(),
        &thief.id(),
        "dsh plugin remove acme:counter",
    ]);
    scratch
        .plugin(["update", "--yes", "--key", &thief.public(), "acme:counter"])
        .refused(&[&acme.id(), &thief.id()]);
    std::fs::remove_file(scratch.work().join("counter.wasm.minisig")).unwrap();
    scratch
        .plugin(["update", "--yes"])
        .refused(&[&acme.id(), "no signature"]);
    signed(&scratch, &acme, "1.0.0");
    scratch
        .plugin(["update", "--yes"])
        .refused(&["1.1.0", "1.0.0", "older"]);
    scratch
        .plugin(["update", "--yes", "--allow-downgrade"])
        .refused(&["older"]);
    assert_eq!(scratch.lock_text(), lock);

    signed(&scratch, &acme, "1.2.0");
    let updated = scratch.plugin(["update", "--yes"]).done();
    assert!(
        updated.stdout.contains("version: 1.1.0 -> 1.2.0"),
        "{updated:?}"
    );
}

#[test]
fn a_profile_that_requires_signatures_takes_nothing_else() {
    let scratch = Scratch::new();
    let acme = Signer::new(0x11);
    scratch.plugin(["list"]).done();
    scratch.write_home(
        "profiles/headless/profile.yml",
        &format!(
            "bundles: [base, headless]\nsignatures: required\ntrusted-keys: ['{}']\n",
            acme.public()
        ),
    );
    scratch.put("counter.wasm", &counter("1.0.0"));
    scratch.plugin(["add", "--yes", "counter.wasm"]).refused(&[
        "acme:counter 1.0.0",
        "signature",
        "required",
    ]);
    signed(&scratch, &acme, "1.0.0");
    // The trusted key is the one to hold it against.
    scratch.plugin(["add", "--yes", "counter.wasm"]).done();
    let thief = Signer::new(0x22);
    signed(&scratch, &thief, "1.1.0");
    scratch
        .plugin(["update", "--yes"])
        .refused(&[&thief.id(), &acme.id()]);
}

/// The package, its signature or the grants are not what was decided: verify says so, and a run does without it.
#[test]
fn what_somebody_changed_is_found_and_is_not_run() {
    let scratch = Scratch::new();
    let acme = Signer::new(0x11);
    signed(&scratch, &acme, "1.0.0");
    scratch
        .plugin(["add", "--yes", "--key", &acme.public(), "counter.wasm"])
        .done();
    let package = scratch
        .home()
        .join(format!("plugins/sha256/{}.wasm", scratch.packages()[0]));
    let lock = scratch.lock_text();
    let wrong = |parts: &[&str]| {
        let verify = scratch.plugin(["verify"]);
        assert_eq!(verify.code, Some(1), "{verify:?}");
        for part in parts {
            assert!(verify.stdout.contains(part), "{part} in {verify:?}");
        }
    };

    let signature = package.with_extension("minisig");
    let whole = std::fs::read(&signature).unwrap();
    std::fs::remove_file(&signature).unwrap();
    wrong(&["its signature is gone", "dsh plugin update acme:counter"]);
    scratch.plugin(["update"]).done();
    assert_eq!(std::fs::read(&signature).unwrap(), whole);
    scratch.plugin(["verify"]).done();

    // Grants that were given to other bytes count for none.
    let other = "0".repeat(64);
    let granted = lock
        .lines()
        .find(|line| line.starts_with("granted-to"))
        .unwrap();
    std::fs::write(
        scratch.lock_file(),
        lock.replace(granted, &format!("granted-to = \"{other}\"")),
    )
    .unwrap();
    wrong(&[
        "were given to 000000000000",
        "dsh plugin grant acme:counter",
    ]);
    std::fs::write(
        scratch.lock_file(),
        lock.replace("[plugin.grants]", "[plugin.grants]\nclock = true"),
    )
    .unwrap();
    wrong(&[
        "nothing of its grant clock",
        "dsh plugin revoke acme:counter clock",
    ]);
    std::fs::write(scratch.lock_file(), &lock).unwrap();

    // The cache may know the code of these bytes; without it a run has to read the package.
    std::fs::write(&package, counter("9.9.9")).unwrap();
    std::fs::remove_dir_all(scratch.home().join("cache")).unwrap();
    wrong(&["plugins/sha256/", "dsh plugin add"]);
    let (ended, results) = scratch.calls("c_count", &serde_json::json!({"text": ""}));
    assert_eq!(ended.stdout, "Called.\n", "{ended:?}");
    assert!(
        ended.stderr.contains("row counter is left out") && ended.stderr.contains("dsh plugin add"),
        "{ended:?}"
    );
    assert!(results[0].1.is_some());
    // Not TOML at all: the profile runs without its plugins, and what is left can be put right.
    std::fs::write(scratch.lock_file(), "][").unwrap();
    let (ended, _) = scratch.calls("c_count", &serde_json::json!({"text": ""}));
    assert_eq!(ended.stdout, "Called.\n", "{ended:?}");
    assert!(ended.stderr.contains("dsh.lock"), "{ended:?}");
    scratch.plugin(["verify"]).refused(&["dsh.lock"]);
}
