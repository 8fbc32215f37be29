//! `basalt-shell` on a terminal: Ctrl-C, a kill, and a terminal that is closed.

use std::path::Path;

use basalt_test_support::{binary, happybase};

/// Runs the shell on a terminal against a server that accepts calls and never replies.
///
/// 1. Ctrl-C ends a command that hangs, and the prompt returns.
/// 2. Ctrl-C clears a line that is half written.
/// 3. The shell is killed, or its terminal closed, while a command hangs.
const IMPATIENT: &str = r#"
import os, pty, select, signal, socket, sys, time
program, end = sys.argv[1:]
listener = socket.create_server(("127.0.0.1", 0))
child, terminal = pty.fork()
if child == 0:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # Ignored if the tests run under nohup.
    os.execv(program, [program, "--target", "127.0.0.1:%d" % listener.getsockname()[1]])

screen = b""  # What has not been looked at.
def until(text):
    global screen
    while text not in screen:
        if not select.select([terminal], [], [], 60)[0]:
            sys.exit("no %r on the screen: %r" % (text, screen))
        screen += os.read(terminal, 4096)
    screen = screen.split(text, 1)[1]

calls = []
def hang(command):
    os.write(terminal, command + b"\r")
    listener.settimeout(60)
    call = listener.accept()[0]
    call.settimeout(60)
    if not call.recv(1):
        sys.exit("the shell sent nothing")
    calls.append(call)  # Kept open, and never answered.

until(b"basalt> ")
hang(b"exists 'first'")
os.write(terminal, b"\x03")
until(b"Interrupted")
until(b"basalt> ")
os.write(terminal, b"half a li\x03")
until(b"basalt> ")
os.write(terminal, b"help 'list'\r")
until(b"Tables, all or those")
until(b"basalt> ")
os.write(terminal, b" help 'secret'\r")
until(b"basalt> ")
hang(b"exists 'last'")
if end == "kill":
    os.kill(child, signal.SIGKILL)
else:
    os.close(terminal)
status = os.waitpid(child, 0)[1]
print("ended by signal", os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0)
"#;

/// Ctrl-C ends a command and not the shell. The history file has every command but those that begin
/// with a space, also after a kill, and only its owner may read it.
#[test]
fn ctrl_c_ends_the_command_and_not_the_shell() {
    let Some(python) = happybase() else { return };
    let shell = binary("basalt-shell");
    let shell = shell.to_str().expect("a path in UTF-8");
    for (end, signal) in [("kill", 9), ("hang up", 1)] {
        let home = basalt_test_support::tempdir().expect("a temporary folder");
        let python = python.clone().with_home(home.path());
        let printed = python
            .run(IMPATIENT, &[shell, end])
            .unwrap_or_else(|error| panic!("{end}\n{error}"));
        assert_eq!(printed.trim(), format!("ended by signal {signal}"), "{end}");
        let history = home.path().join(".basalt_shell_history");
        let kept = std::fs::read_to_string(&history).expect("the history was saved");
        let commands: Vec<&str> = kept.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            commands,
            ["exists 'first'", "help 'list'", "exists 'last'"],
            "{end}"
        );
        assert_eq!(mode(&history), 0o600, "{end}");
    }
}

fn mode(file: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = std::fs::metadata(file).expect("it is there");
    metadata.permissions().mode() & 0o777
}
