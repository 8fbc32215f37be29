//! The lines of docs/security.md that set Kerberos up, from an empty directory.

use basalt_test_support::{binary, free_address, workspace};

use super::{Kdc, web};

/// The lines behind the mark of this file.
fn lines() -> String {
    let page = std::fs::read_to_string(workspace().join("docs/security.md")).expect("the page is there");
    let (_, behind) = page
        .split_once("kerberos/page.rs runs these lines")
        .expect("the page has the mark");
    let (_, block) = behind.split_once("```sh\n").expect("lines follow");
    block.split_once("```").expect("they have an end").0.to_owned()
}

#[test]
fn the_lines_of_the_page_make_a_server_that_takes_tickets() {
    if !web::has_curl() {
        return;
    }
    let Some(kdc) = Kdc::start_with_users() else {
        return;
    };
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let program = binary("basalt");
    let programs = program.parent().expect("a program is in a folder").display();
    let (port, http) = (free_address(), free_address());
    // The ports are others, ada's key is in a file, and the client waits for the server.
    let script = lines()
        .replace(
            "kinit ada",
            &format!("kinit -k -t {} ada", kdc.keys("ada").display()),
        )
        .replace("curl ", "curl -s --retry 30 --retry-connrefused --retry-delay 1 ")
        .replace("localhost:9095", &format!("localhost:{}", http.port()));
    let script = format!("set -e\nexport PATH={programs}:$PATH\ntrap 'kill $!' EXIT\n{script}");
    let output = kdc
        .command("sh")
        .current_dir(dir.path())
        .args(["-c", &script])
        .env("KRB5CCNAME", kdc.tickets("ada"))
        .env("BASALT_SERVER_LISTEN", port.to_string())
        .env("BASALT_HTTP_LISTEN", http.to_string())
        .output()
        .expect("there is a shell");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (page, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success() && page.contains("<html"),
        "{script}\n{page}\n{errors}"
    );
}
