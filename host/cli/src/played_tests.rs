//! Recorded sessions of a person who stays: who says more in the same process,
//! gives a turn up, or sees a title come. The headless command has no door for these, so the same run
//! is made here without its process, and its agent is told. What a command can
//! play is in `tests/e2e/recorded.rs`.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use dsh_agent::{CancelCause, Message};
use dsh_profile::launch::Boot;
use dsh_profile::{Environment, Home};
use dsh_session::Kind;
use mock_provider::Mock;
use playback::{
    Door, List, Outcome, Provider, Recording, Stage, Told, When, compare, played, recordings,
};

use crate::arguments::{self, Arguments};
use crate::attachments::Attachments;
use crate::boot::{self, Place};
use crate::exit::Failure;
use crate::run::Run;

#[path = "../../plugin/tests/components/prober.rs"]
mod guest;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("host/cli lies in the checkout")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_recording_of_a_person_who_stays_comes_out_equal() {
    let Some(recordings) = recordings(root()) else {
        println!("SKIPPED: no recorded sessions here; set DSH_SHARED to a directory that has them");
        return;
    };
    let player = guest::named(&root().join("host/plugin"), "player");
    let mut list = List::new(root(), &recordings);
    let mut count = 0;
    for (recording, stage) in played(&recordings, &player.to_string_lossy()) {
        if stage.door == Door::Person {
            let outcome = play(recording, &stage).await;
            list.met(recording, outcome);
            count += 1;
        }
    }
    assert!(count >= 5, "{count} are played");
    list.settle();
}

async fn play(recording: &Recording, stage: &Stage) -> Result<Outcome, String> {
    let mock = Provider::of(recording)?.serve();
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let ran = run(stage, &mock, folder.path()).await;
    let events = ran.map_err(|failure| failure.message().to_owned())?;
    Ok(compare(recording, &events))
}

async fn run(stage: &Stage, mock: &Mock, folder: &Path) -> Result<Vec<Told>, Failure> {
    let cwd = folder.join("work");
    std::fs::create_dir(&cwd).map_err(Failure::of)?;
    for (path, text) in &stage.files {
        std::fs::write(cwd.join(path), text).map_err(Failure::of)?;
    }
    let patch = folder.join("stage.yml");
    std::fs::write(&patch, stage.patch.to_string()).map_err(Failure::of)?;
    let boot = Boot {
        profile: "headless".to_owned(),
        patches: vec![patch],
        safe: false,
        strict: true,
        args: vec![
            format!("--model={}", stage.model),
            format!("--permission={}", stage.permission),
            stage.prompts[0].text.clone(),
        ],
    };
    let home = folder.join("home");
    let home = Home::resolve(Some(home.as_os_str()), None, &cwd).map_err(Failure::of)?;
    let process = [
        ("DEEPSEEK_BASE_URL", mock.base_url()),
        ("DEEPSEEK_API_KEY", "sk-played".to_owned()),
    ];
    let process = process.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let place = Place { home, cwd };
    let composed = boot::compose_at(place, Environment::process(process), &boot)?;
    let Arguments::Run(request) = arguments::parse(&boot.args)? else {
        return Err(Failure::of("it asks for help"));
    };
    let run = Run::start(&composed, &request, &Attachments::of(&composed.place.home)).await?;
    for prompt in &stage.prompts {
        let mut events = run.log.follow();
        run.agent
            .followup(&Message::from_person(&prompt.text))
            .map_err(Failure::of)?;
        if let Some(when) = &prompt.cancel {
            match when {
                When::Chunks(count) => {
                    let mut left = *count;
                    while left > 0 {
                        let event = events.recv().await;
                        let event = event.ok_or_else(|| Failure::of("the log ended"))?;
                        left -= usize::from(event.kind == Kind::AssistantChunk);
                    }
                }
                When::Working(file) => {
                    while !composed.place.cwd.join(file).exists() {
                        tokio::time::sleep(Duration::from_millis(2)).await;
                    }
                }
            }
            let given_up = run.agent.cancel(CancelCause::User, false);
            given_up.map_err(Failure::of)?;
        }
        run.agent.when_idle().await;
    }
    if stage.titled_late {
        let mut events = run.log.follow();
        mock.open_gate();
        loop {
            let event = events.recv().await;
            let event = event.ok_or_else(|| Failure::of("the log ended"))?;
            if Told::of(&event).is_models_title() {
                break;
            }
        }
    }
    run.close().await?;
    Ok(run.log.read(|session| {
        let events = session.live_events();
        events.iter().map(|event| Told::of(event)).collect()
    }))
}
