//! `check FILE...`: what `-c` would say, for trying things without the binary.
use std::sync::Arc;
struct F;
impl syntax::Facts for F {
    fn version(&self) -> &str {
        "3.5-dev5"
    }
    fn feature(&self, _: &str) -> bool {
        false
    }
    fn enabled(&self, _: &str) -> Option<bool> {
        None
    }
    fn openssl_version(&self) -> Option<&str> {
        None
    }
    fn ssl_library(&self) -> &str {
        ""
    }
    fn awslc_api(&self) -> Option<u64> {
        None
    }
    fn fips_mode(&self) -> bool {
        false
    }
}
fn one(file: &str) -> i32 {
    let mut env = syntax::Environment::of_process();
    for (n, v) in compile::logformats::ENVIRONMENT {
        env.set(n, v);
    }
    let sources = match syntax::load([file]) {
        Ok(s) => s,
        Err(d) => {
            eprintln!("{d}");
            return 1;
        }
    };
    let reading = syntax::read(sources, env, syntax::Grammar { sections: syntax::SECTION_WORDS, facts: &F });
    let keep = reading.sources.clone();
    let options = compile::Options { fd_limit: 20000, processors: 2, ..Default::default() };
    let world = Arc::new(model::World::new(compile::workers(&reading, &options)));
    let out = compile::compile(reading, &lang::Registry::standard(), world, &options);
    let r = syntax::Render {
        pid: 1,
        carets: std::env::var("CARET").is_ok(),
        zero_warning: out.zero_warning,
        ..Default::default()
    };
    let v = r.verdict(&out.diagnostics, &keep);
    eprint!("{}", v.errors);
    v.status
}
fn main() {
    let mut status = 0;
    for file in std::env::args().skip(1) {
        status |= one(&file);
    }
    std::process::exit(status);
}
