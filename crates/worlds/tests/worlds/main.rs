//! Scenes. See the library's head for how they are played, and replayed.

mod aborts;
mod bodies;
mod checks;
mod cuts;
mod facts;
mod h2;
mod h2_bytes;
mod h2_peers;
mod h2_uploads;
mod limits;
mod measures;
mod queue;
mod responders;
mod retries;
mod reuse;
mod rules;
mod seeded;
mod stick;
mod stop;
mod tcp;
mod timeouts;
mod tls;
mod tunnels;
mod verdicts;
