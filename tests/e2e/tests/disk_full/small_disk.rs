//! A small file system of a test's own, to be filled up.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A mounted file system. Unmounted when dropped.
#[derive(Debug)]
pub(crate) struct SmallDisk {
    /// Where it is mounted.
    root: PathBuf,
    /// The file that fills it.
    filler: Option<File>,
    /// Holds the image and the mount point.
    _dir: TempDir,
}

impl SmallDisk {
    /// An ext4 file system of that many bytes on a loop device, or else a tmpfs. `None`, with one line that
    /// says why, where neither can be mounted: the test is then not run.
    pub(crate) fn mount(bytes: u64) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let root = dir.path().join("disk");
        std::fs::create_dir(&root).expect("the folder is ours");
        match mount_loop(dir.path(), &root, bytes).or_else(|_| mount_tmpfs(&root, bytes)) {
            Ok(()) => Some(Self {
                root,
                filler: None,
                _dir: dir,
            }),
            Err(why) => {
                println!("not run: a file system cannot be mounted here: {why}");
                None
            }
        }
    }

    /// Where it is mounted.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Takes all free space, on top of earlier calls.
    pub(crate) fn fill(&mut self) {
        let mut options = File::options();
        options.create(true).append(true);
        let filler = options
            .open(self.root.join("filler"))
            .expect("a file needs no more than a name");
        let mut size = filler.metadata().expect("the file is open").len();
        let mut step = self.free_bytes();
        // The usable space changes with other programs and the file system's own needs, so it is
        // found by trying.
        while step >= 4096 {
            let flags = rustix::fs::FallocateFlags::empty();
            match rustix::fs::fallocate(&filler, flags, size, step) {
                Ok(()) => size += step,
                Err(_) => step /= 2,
            }
        }
        self.filler = Some(filler);
    }

    /// Frees the space that [`Self::fill`] took.
    pub(crate) fn empty(&mut self) {
        self.filler = None;
        std::fs::remove_file(self.root.join("filler")).expect("the file is there");
    }

    /// Bytes that are free.
    pub(crate) fn free_bytes(&self) -> u64 {
        let space = rustix::fs::statvfs(&self.root).expect("it is mounted");
        space.f_bavail * space.f_frsize
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        self.filler = None;
        // A process that a failing test has left behind may still be in it.
        if run(Command::new("umount").arg(&self.root)).is_err() {
            let _ = run(Command::new("umount").arg("--lazy").arg(&self.root));
        }
    }
}

fn mount_loop(dir: &Path, root: &Path, bytes: u64) -> Result<(), String> {
    let image = dir.join("image");
    let file = File::create(&image).map_err(|error| error.to_string())?;
    file.set_len(bytes).map_err(|error| error.to_string())?;
    // Without the share that ext4 keeps for the system's own processes, which may be the test's.
    run(Command::new("mkfs.ext4")
        .args(["-q", "-F", "-m", "0"])
        .arg(&image))?;
    run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(root))
}

fn mount_tmpfs(root: &Path, bytes: u64) -> Result<(), String> {
    let size = format!("size={bytes}");
    run(Command::new("mount")
        .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
        .arg(root))
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    ))
}
