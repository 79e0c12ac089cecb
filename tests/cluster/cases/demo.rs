//! `wva-sim demo` as people meet it: a process, and the kubectl that they use on it.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::harness::fault::{Fault, Result};
use crate::harness::suite::{Case, Cx, case};
use crate::harness::tools;
use crate::harness::wait::eventually;

/// Real time for what takes virtual minutes.
const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) fn cases() -> Vec<Case> {
    vec![case!(shared, demo::kubectl_on_a_running_demo).within(Duration::from_mins(4))]
}

/// A demo that plays, and what it has said so far.
struct Demo {
    process: Child,
    said: PathBuf,
    kubectl: PathBuf,
    home: String,
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ended = self.process.kill().and_then(|()| self.process.wait());
    }
}

impl Demo {
    fn start(cx: &Cx) -> Result<Self> {
        let site = &cx.world.site;
        let said = site.write("demo-output", "")?;
        let home = site.data("demo");
        std::fs::create_dir_all(&home)?;
        let process = Command::new(tools::wva_sim())
            .args(["demo", "--seed", "1"])
            .env("TMPDIR", &home)
            .stdin(Stdio::null())
            .stdout(File::create(&said)?)
            .spawn()?;
        Ok(Self { process, said, kubectl: site.tools.program("kubectl")?, home })
    }

    fn said(&self) -> Result<String> {
        Ok(std::fs::read_to_string(&self.said)?)
    }

    async fn says(&self, what: &str) -> Result {
        eventually(what, PATIENCE, async || {
            let text = self.said()?;
            let found = text.contains(what).then_some(());
            found.ok_or_else(|| Fault::new(text))
        })
        .await
    }

    /// The first word of what it has said that is like this.
    fn word(&self, is_like: impl Fn(&str) -> bool) -> Result<String> {
        let said = self.said()?;
        let word = said.split_whitespace().find(|word| is_like(word));
        word.map(str::to_owned).ok_or_else(|| Fault::new(format!("not in {said}")))
    }

    fn kubeconfig(&self) -> Result<String> {
        self.word(|word| word.ends_with(".kubeconfig"))
    }

    /// The program, asked about the controller at the printed address.
    fn wva(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new(tools::wva());
        command
            .args(arguments)
            .args(["--address", &self.word(|word| word.starts_with("http://"))?])
            .env("KUBECONFIG", self.kubeconfig()?)
            .env("HOME", &self.home)
            .current_dir(&self.home)
            .stdin(Stdio::null());
        Ok(command)
    }

    fn explains(&self, arguments: &[&str], parts: &[&str]) -> Result {
        let output = self.wva(arguments)?.output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let missing = parts.iter().find(|part| !text.contains(**part));
        if output.status.success() && missing.is_none() {
            return Ok(());
        }
        let error = String::from_utf8_lossy(&output.stderr);
        Err(Fault::new(format!("wva {arguments:?} lacks {missing:?}: {text}{error}")))
    }

    fn run(&self, arguments: &[&str]) -> Result<Output> {
        let output = Command::new(&self.kubectl)
            .args(["--kubeconfig", &self.kubeconfig()?, "-n", "llm-d"])
            .args(arguments)
            .env("HOME", &self.home)
            .env("KUBE_EDITOR", "sed -i s/maxReplicas:.5/maxReplicas:\\ 6/")
            .stdin(Stdio::null())
            .output()?;
        Ok(output)
    }

    fn succeeds(&self, arguments: &[&str], parts: &[&str]) -> Result<String> {
        let output = self.run(arguments)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let error = String::from_utf8_lossy(&output.stderr);
        let missing = parts.iter().find(|part| !text.contains(**part));
        if output.status.success() && missing.is_none() {
            return Ok(text);
        }
        Err(Fault::new(format!("kubectl {arguments:?} lacks {missing:?}: {text}{error}")))
    }

    fn refused(&self, arguments: &[&str], why: &str) -> Result {
        let output = self.run(arguments)?;
        let text = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() && text.contains(why) {
            return Ok(());
        }
        Err(Fault::new(format!("kubectl {arguments:?}: {text}")))
    }
}

async fn kubectl_on_a_running_demo(cx: &Cx) -> Result {
    let demo = Demo::start(cx)?;
    demo.says(".kubeconfig").await?;
    demo.says("ready 1").await?;
    read(&demo).await?;
    explain(cx, &demo).await?;
    write(cx, &demo)?;
    watch(cx, &demo).await?;
    end(demo).await
}

async fn read(demo: &Demo) -> Result {
    demo.succeeds(
        &["get", "va,hpa,deploy,pods"],
        &["llama-70b-h100", "TARGET", "MINPODS", "UP-TO-DATE", "STATUS"],
    )?;
    let yaml = demo.succeeds(&["get", "va", "qwen3-8b-fp8", "-o", "yaml"], &["status:"])?;
    let object: Value = serde_yaml::from_str(&yaml)?;
    assert_eq!(object["spec"]["modelID"], "Qwen/Qwen3-8B");
    for kind in ["va", "deploy", "hpa", "pods"] {
        // Of several objects at once it shows no events by default.
        let all = ["describe", kind, "--show-events=true"];
        // It lists and then reads each: a pod that ends in between fails the command.
        let text = eventually("objects that stay while they are read", PATIENCE, async || {
            demo.succeeds(&all, &["Events:"])
        })
        .await?;
        assert!(!text.contains("<invalid>"), "ages in {text}");
    }
    demo.succeeds(
        &["api-resources"],
        &["variantautoscalings", "statefulsets", "horizontalpodautoscalers"],
    )?;
    let pod = demo.succeeds(&["get", "pods", "-o", "name"], &["pod/"])?;
    let pod = pod.lines().next().unwrap_or_default();
    demo.refused(&["logs", pod], "simulated")?;
    demo.refused(&["exec", pod, "--", "ls"], "simulated")
}

/// What explains decisions works on the controller of the demo.
async fn explain(cx: &Cx, demo: &Demo) -> Result {
    let name = "llm-d/llama-70b-h100";
    demo.explains(&["why", name], &[name, "\nbecause    ", "\nsteps\n", "\nthresholds\n"])?;
    demo.explains(&["bundle", "-n", "llm-d", "--output", "demo.tgz"], &["demo.tgz\n"])?;

    let parts = ["MODEL / VARIANT", "  llama-70b-h100 "];
    demo.explains(&["status", "-n", "llm-d"], &parts)?;
    let tables = cx.world.site.write("demo-status", "")?;
    let mut watching =
        demo.wva(&["status", "-n", "llm-d", "--watch"])?.stdout(File::create(&tables)?).spawn()?;
    let second = eventually("a second table", PATIENCE, async || {
        let text = std::fs::read_to_string(&tables)?;
        let found = (text.matches(parts[0]).count() > 1).then_some(());
        found.ok_or_else(|| Fault::new(text))
    })
    .await;
    // It fails only when it has ended already.
    let _ended = watching.kill().and_then(|()| watching.wait());
    second
}

fn write(cx: &Cx, demo: &Demo) -> Result {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine}\ndata: {a: b}\n";
    let file = cx.world.site.write("demo-mine.yaml", text)?;
    let file = file.display().to_string();
    demo.succeeds(&["apply", "-f", &file], &["configmap/mine created"])?;
    demo.succeeds(&["apply", "-f", &file], &["configmap/mine unchanged"])?;
    demo.succeeds(&["edit", "va", "qwen3-8b-fp8"], &["edited"])?;
    let most = "jsonpath={.spec.maxReplicas}";
    demo.succeeds(&["get", "va", "qwen3-8b-fp8", "-o", most], &["6"])?;
    demo.succeeds(&["scale", "deploy", "llama-70b-a100", "--replicas=2"], &["scaled"])?;
    demo.succeeds(&["delete", "-f", &file], &["deleted"])?;
    demo.refused(&["get", "configmap", "mine"], "NotFound")
}

/// What `get -w` shows comes from the controller's own decisions.
async fn watch(cx: &Cx, demo: &Demo) -> Result {
    let output = cx.world.site.write("demo-watch", "")?;
    let mut watching = Command::new(&demo.kubectl)
        .args(["--kubeconfig", &demo.kubeconfig()?, "-n", "llm-d"])
        .args(["get", "deploy", "-w"])
        .env("HOME", &demo.home)
        .stdout(File::create(&output)?)
        .spawn()?;
    let lines = || -> Result<usize> { Ok(std::fs::read_to_string(&output)?.lines().count()) };
    // A headline and six deployments at first.
    let more = eventually("a change in the watch", PATIENCE, async || {
        let count = lines()?;
        (count > 8).then_some(()).ok_or_else(|| Fault::new(format!("{count} lines")))
    })
    .await;
    // It fails only when it has ended already.
    let _ended = watching.kill().and_then(|()| watching.wait());
    more
}

/// Ctrl-C ends it in order, with a summary.
async fn end(mut demo: Demo) -> Result {
    let interrupt = Command::new("kill").args(["-INT", &demo.process.id().to_string()]).status()?;
    assert!(interrupt.success());
    demo.says("scalings").await?;
    let status = demo.process.wait()?;
    let said = demo.said()?;
    assert!(status.success(), "{said}");
    let scalings = said.lines().find(|line| line.starts_with("scalings"));
    let scalings = scalings.unwrap_or_default();
    assert!(scalings.contains("after the start"), "{said}");
    eprintln!("demo: {scalings}");
    Ok(())
}
