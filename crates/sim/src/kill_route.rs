//! A route that kills roles of a running controller, for tests against real servers.

use http::request::Parts;
use hyper::{Method, StatusCode};

use wva::hooks::ControllerHooks;
use wva::roles::Role;
use wva::serve::answer::{HttpResponse, plain};
use wva_supervise::ActorRegistry;

/// `POST /debug/kill?role=optimizer` on the metrics server.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KillRoute;

impl ControllerHooks for KillRoute {
    fn answer(&self, head: &Parts, actors: &ActorRegistry<Role>) -> Option<HttpResponse> {
        let is_kill = head.method == Method::POST && head.uri.path() == "/debug/kill";
        is_kill.then(|| kill(head, actors))
    }
}

fn kill(head: &Parts, actors: &ActorRegistry<Role>) -> HttpResponse {
    let role = head.uri.query().and_then(|query| query.strip_prefix("role="));
    let Some(role) = role.and_then(|role| role.parse().ok()) else {
        return plain(StatusCode::BAD_REQUEST, "name a role: ?role=optimizer");
    };
    if role == Role::Root {
        return plain(StatusCode::BAD_REQUEST, "the root ends with the process");
    }
    if actors.kill(&role) {
        plain(StatusCode::OK, "killed")
    } else {
        plain(StatusCode::NOT_FOUND, "the role is not alive")
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn answered(method: Method, uri: &str) -> Option<StatusCode> {
        let request = Request::builder().method(method).uri(uri).body(());
        let (head, ()) = request.unwrap().into_parts();
        let answer = KillRoute.answer(&head, &ActorRegistry::new());
        answer.map(|answer| answer.status())
    }

    #[test]
    fn only_a_role_that_lives_is_killed_and_only_by_post() {
        for (method, uri, expected) in [
            (Method::GET, "/debug/kill?role=optimizer", None),
            (Method::POST, "/debug/tree", None),
            (Method::POST, "/debug/kill", Some(StatusCode::BAD_REQUEST)),
            (Method::POST, "/debug/kill?role=root", Some(StatusCode::BAD_REQUEST)),
            (Method::POST, "/debug/kill?role=optimizer", Some(StatusCode::NOT_FOUND)),
        ] {
            assert_eq!(answered(method, uri), expected, "{uri}");
        }
    }
}
