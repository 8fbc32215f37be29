//! The state of a simulated disk: the bytes that reads see, the durable bytes, and the changes
//! between them.
//!
//! Every file has `seen`, the bytes in the page cache, `durable`, the bytes on the platter, and `unsynced`,
//! the operations that lead from the one to the other. Every directory has seen and durable names; the
//! unsynced changes of names stand in one list in the order they were made, because a rename may touch two
//! directories and must be kept or lost as one.
//!
//! Bytes of files are shared by copies of a disk until one of them changes the file: a simulation copies a
//! disk far more often than it changes a file.
//!
//! Invariant: `durable` with `unsynced` applied is `seen`, except where a sync has failed: the lost
//! bytes are in `seen` only.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::Range;
use std::path::{Component, Path};
use std::sync::Arc;

use rustix::io::Errno;

/// The largest simulated file: a wrong offset should fail, not use up the machine's memory.
const FILE_MAX_BYTES: u64 = 1 << 30;

/// Maximum length of a file's or directory's name, as on most file systems.
const NAME_MAX_BYTES: usize = 255;

/// A node of the disk, whatever its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Inode(pub(super) u64);

pub(super) const ROOT: Inode = Inode(0);

/// A change of a file that is not durable yet.
#[derive(Clone, Debug)]
pub(super) enum FileOp {
    Write {
        offset: usize,
        bytes: Arc<[u8]>,
    },
    /// Cuts or extends with zeros.
    SetLen(usize),
    /// Extends with zeros if shorter.
    Allocate(usize),
}

impl FileOp {
    pub(super) fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes: new } => {
                let end = offset + new.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*offset..end].copy_from_slice(new);
            }
            Self::SetLen(len) => bytes.resize(*len, 0),
            Self::Allocate(len) => bytes.resize(bytes.len().max(*len), 0),
        }
    }

    /// The file's size after it, if it was `len` before.
    pub(super) fn len_after(&self, len: usize) -> usize {
        match self {
            Self::Write { offset, bytes } if bytes.is_empty() => len.max(*offset),
            Self::Write { offset, bytes } => len.max(offset + bytes.len()),
            Self::SetLen(len) => *len,
            Self::Allocate(least) => len.max(*least),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct FileNode {
    pub(super) seen: Arc<Vec<u8>>,
    pub(super) durable: Arc<Vec<u8>>,
    pub(super) unsynced: Vec<FileOp>,
    /// Ranges that answer EIO.
    pub(super) unreadable: Vec<Range<u64>>,
    /// Open handles: they keep a file without a name alive.
    handles: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct DirNode {
    pub(super) seen: BTreeMap<OsString, Inode>,
    pub(super) durable: BTreeMap<OsString, Inode>,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    File(FileNode),
    Dir(DirNode),
}

/// One name's change.
#[derive(Clone, Debug)]
pub(super) struct NameChange {
    pub(super) dir: Inode,
    pub(super) name: OsString,
    /// The inode of the name from now on; `None`: the name is gone.
    pub(super) to: Option<Inode>,
    /// The directory that goes away with the name, if it is one.
    removed_dir: Option<Inode>,
}

/// Changes of names that happen together or not at all, not durable yet.
#[derive(Clone, Debug)]
pub(super) struct NameOp {
    pub(super) changes: Vec<NameChange>,
}

/// A whole disk.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    pub(super) nodes: BTreeMap<Inode, Node>,
    pub(super) unsynced_names: Vec<NameOp>,
    next_inode: u64,
    pub(super) capacity_bytes: Option<u64>,
}

/// A resolved name: its directory, its last component, and the inode there.
struct Found {
    dir: Inode,
    name: OsString,
    inode: Option<Inode>,
}

impl Disk {
    pub(super) fn new(capacity_bytes: Option<u64>) -> Self {
        Self {
            nodes: BTreeMap::from([(ROOT, Node::Dir(DirNode::default()))]),
            unsynced_names: Vec::new(),
            next_inode: 1,
            capacity_bytes,
        }
    }

    // Names.

    fn components(path: &Path) -> io::Result<Vec<&OsStr>> {
        path.components()
            .filter_map(|component| match component {
                Component::Normal(name) if name.len() > NAME_MAX_BYTES => {
                    Some(Err(Errno::NAMETOOLONG.into()))
                }
                Component::Normal(name) => Some(Ok(name)),
                Component::RootDir | Component::CurDir => None,
                Component::ParentDir | Component::Prefix(_) => Some(Err(Errno::INVAL.into())),
            })
            .collect()
    }

    pub(super) fn dir(&self, inode: Inode) -> io::Result<&DirNode> {
        match self.nodes.get(&inode) {
            Some(Node::Dir(dir)) => Ok(dir),
            Some(Node::File(_)) => Err(Errno::NOTDIR.into()),
            None => Err(Errno::NOENT.into()),
        }
    }

    pub(super) fn file(&self, inode: Inode) -> io::Result<&FileNode> {
        match self.nodes.get(&inode) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Dir(_)) => Err(Errno::ISDIR.into()),
            None => Err(Errno::NOENT.into()),
        }
    }

    pub(super) fn file_mut(&mut self, inode: Inode) -> io::Result<&mut FileNode> {
        match self.nodes.get_mut(&inode) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Dir(_)) => Err(Errno::ISDIR.into()),
            None => Err(Errno::NOENT.into()),
        }
    }

    /// The node at `path`.
    pub(super) fn resolve(&self, path: &Path) -> io::Result<Inode> {
        let mut inode = ROOT;
        for name in Self::components(path)? {
            inode = *self
                .dir(inode)?
                .seen
                .get(name)
                .ok_or_else(|| io::Error::from(Errno::NOENT))?;
        }
        Ok(inode)
    }

    fn look_up(&self, path: &Path) -> io::Result<Found> {
        let mut names = Self::components(path)?;
        let name = names.pop().ok_or_else(|| io::Error::from(Errno::BUSY))?;
        let mut dir = ROOT;
        for above in names {
            dir = *self
                .dir(dir)?
                .seen
                .get(above)
                .ok_or_else(|| io::Error::from(Errno::NOENT))?;
        }
        Ok(Found {
            dir,
            name: name.to_owned(),
            inode: self.dir(dir)?.seen.get(name).copied(),
        })
    }

    fn new_node(&mut self, node: Node) -> Inode {
        let inode = Inode(self.next_inode);
        self.next_inode += 1;
        self.nodes.insert(inode, node);
        inode
    }

    /// Changes names as reads see them and notes the change as unsynced.
    fn change_names(&mut self, changes: Vec<NameChange>) {
        for change in &changes {
            if let Some(Node::Dir(dir)) = self.nodes.get_mut(&change.dir) {
                set_name(&mut dir.seen, change);
            }
        }
        self.unsynced_names.push(NameOp { changes });
    }

    /// Opens a file for a handle; creates it if `create` and it is not there.
    pub(super) fn open(&mut self, path: &Path, create: Create) -> io::Result<Inode> {
        let found = self.look_up(path)?;
        let inode = match (found.inode, create) {
            (Some(_), Create::New) => return Err(Errno::EXIST.into()),
            (None, Create::No) => return Err(Errno::NOENT.into()),
            (Some(inode), _) => inode,
            (None, _) => {
                let inode = self.new_node(Node::File(FileNode::default()));
                self.change_names(vec![found.becomes(Some(inode), None)]);
                inode
            }
        };
        self.file_mut(inode)?.handles += 1;
        Ok(inode)
    }

    /// A handle was dropped.
    pub(super) fn close(&mut self, inode: Inode) {
        if let Ok(file) = self.file_mut(inode) {
            file.handles = file.handles.saturating_sub(1);
        }
    }

    pub(super) fn create_dir_all(&mut self, path: &Path) -> io::Result<()> {
        let mut dir = ROOT;
        for name in Self::components(path)? {
            if let Some(inode) = self.dir(dir)?.seen.get(name) {
                dir = *inode;
                continue;
            }
            let inode = self.new_node(Node::Dir(DirNode::default()));
            self.change_names(vec![NameChange {
                dir,
                name: name.to_owned(),
                to: Some(inode),
                removed_dir: None,
            }]);
            dir = inode;
        }
        // If a file has the directory's name, mkdir reports EEXIST.
        self.dir(dir).map(|_| ()).map_err(|_| Errno::EXIST.into())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let source = self.look_up(from)?;
        let target = self.look_up(to)?;
        let inode = source.inode.ok_or_else(|| io::Error::from(Errno::NOENT))?;
        if target.inode == Some(inode) {
            return Ok(());
        }
        let moves_dir = self.dir(inode).is_ok();
        if moves_dir && Self::components(to)?.starts_with(&Self::components(from)?) {
            return Err(Errno::INVAL.into());
        }
        if Self::components(from)?.starts_with(&Self::components(to)?) {
            return Err(Errno::NOTEMPTY.into());
        }
        let mut removed_dir = None;
        if let Some(replaced) = target.inode {
            match (moves_dir, self.dir(replaced)) {
                (false, Ok(_)) => return Err(Errno::ISDIR.into()),
                (true, Err(_)) => return Err(Errno::NOTDIR.into()),
                (true, Ok(dir)) if !dir.seen.is_empty() => return Err(Errno::NOTEMPTY.into()),
                (true, Ok(_)) => removed_dir = Some(replaced),
                (false, Err(_)) => {}
            }
        }
        self.change_names(vec![
            source.becomes(None, None),
            target.becomes(Some(inode), removed_dir),
        ]);
        Ok(())
    }

    pub(super) fn link(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let inode = self.resolve(from)?;
        let target = self.look_up(to)?;
        if target.inode.is_some() {
            return Err(Errno::EXIST.into());
        }
        if self.dir(inode).is_ok() {
            return Err(Errno::PERM.into());
        }
        self.change_names(vec![target.becomes(Some(inode), None)]);
        Ok(())
    }

    pub(super) fn remove_file(&mut self, path: &Path) -> io::Result<()> {
        let found = self.look_up(path)?;
        self.file(found.inode.ok_or_else(|| io::Error::from(Errno::NOENT))?)?;
        self.change_names(vec![found.becomes(None, None)]);
        Ok(())
    }

    pub(super) fn remove_dir(&mut self, path: &Path) -> io::Result<()> {
        let found = self.look_up(path)?;
        let inode = found.inode.ok_or_else(|| io::Error::from(Errno::NOENT))?;
        if !self.dir(inode)?.seen.is_empty() {
            return Err(Errno::NOTEMPTY.into());
        }
        self.change_names(vec![found.becomes(None, Some(inode))]);
        Ok(())
    }

    // Bytes.

    fn check_len(len: u64) -> io::Result<usize> {
        if len > FILE_MAX_BYTES {
            return Err(Errno::FBIG.into());
        }
        Ok(len as usize)
    }

    /// Bytes of all files that have a name or an open handle. Holes count: they are written sooner or later.
    pub(super) fn used_bytes(&self) -> u64 {
        let named: BTreeSet<Inode> = self.dirs().flat_map(|dir| dir.seen.values().copied()).collect();
        self.nodes
            .iter()
            .map(|(inode, node)| match node {
                Node::File(file) if file.handles > 0 || named.contains(inode) => file.seen.len() as u64,
                _ => 0,
            })
            .sum()
    }

    fn dirs(&self) -> impl Iterator<Item = &DirNode> {
        self.nodes.values().filter_map(|node| match node {
            Node::Dir(dir) => Some(dir),
            Node::File(_) => None,
        })
    }

    /// Maximum length to which a file of `len` bytes may grow, at most `wanted`.
    fn growth_limit(&self, len: usize, wanted: usize) -> usize {
        match self.capacity_bytes {
            Some(capacity) if wanted > len => {
                let free = usize::try_from(capacity.saturating_sub(self.used_bytes())).unwrap_or(usize::MAX);
                wanted.min(len.saturating_add(free))
            }
            _ => wanted,
        }
    }

    /// Writes; a full disk takes the part that fits and then reports ENOSPC, as a real one does.
    pub(super) fn write(&mut self, inode: Inode, bytes: &[u8], offset: u64) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let end = Self::check_len(offset.saturating_add(bytes.len() as u64))?;
        let offset = offset as usize;
        let limit = self.growth_limit(self.file(inode)?.seen.len(), end);
        let fits = if limit >= end {
            bytes.len()
        } else {
            limit.saturating_sub(offset).min(bytes.len())
        };
        if fits > 0 {
            self.change_file(
                inode,
                FileOp::Write {
                    offset,
                    bytes: bytes[..fits].into(),
                },
            )?;
        }
        if fits < bytes.len() {
            return Err(Errno::NOSPC.into());
        }
        Ok(())
    }

    pub(super) fn allocate(&mut self, inode: Inode, len: u64) -> io::Result<()> {
        let len = Self::check_len(len)?;
        let seen = self.file(inode)?.seen.len();
        if self.growth_limit(seen, len) < len {
            return Err(Errno::NOSPC.into());
        }
        if len > seen {
            self.change_file(inode, FileOp::Allocate(len))?;
        }
        Ok(())
    }

    pub(super) fn set_len(&mut self, inode: Inode, len: u64) -> io::Result<()> {
        let len = Self::check_len(len)?;
        if self.growth_limit(self.file(inode)?.seen.len(), len) < len {
            return Err(Errno::NOSPC.into());
        }
        self.change_file(inode, FileOp::SetLen(len))
    }

    fn change_file(&mut self, inode: Inode, op: FileOp) -> io::Result<()> {
        let file = self.file_mut(inode)?;
        op.apply(Arc::make_mut(&mut file.seen));
        file.unsynced.push(op);
        Ok(())
    }

    pub(super) fn read(&self, inode: Inode, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let file = self.file(inode)?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(file.seen.len());
        let count = buffer.len().min(file.seen.len() - start);
        let asked = offset..offset.saturating_add(count as u64);
        if file
            .unreadable
            .iter()
            .any(|bad| bad.start < asked.end && asked.start < bad.end)
        {
            return Err(Errno::IO.into());
        }
        buffer[..count].copy_from_slice(&file.seen[start..start + count]);
        Ok(count)
    }

    // Syncs.

    pub(super) fn sync_file(&mut self, inode: Inode) -> io::Result<()> {
        let file = self.file_mut(inode)?;
        for op in std::mem::take(&mut file.unsynced) {
            op.apply(Arc::make_mut(&mut file.durable));
        }
        Ok(())
    }

    /// A sync that failed: the pages are clean now and will not be written again.
    pub(super) fn discard_unsynced(&mut self, inode: Inode) -> io::Result<()> {
        self.file_mut(inode)?.unsynced.clear();
        Ok(())
    }

    /// Makes the changes of names in one directory durable.
    pub(super) fn sync_dir(&mut self, inode: Inode) -> io::Result<()> {
        self.dir(inode)?;
        let mut keep: Vec<bool> = self
            .unsynced_names
            .iter()
            .map(|op| op.changes.iter().any(|change| change.dir == inode))
            .collect();
        self.keep_what_they_need(&mut keep);
        self.commit_names(&keep);
        Ok(())
    }

    /// Makes all changes of names durable: a commit of ext4's journal.
    pub(super) fn commit_all_names(&mut self) {
        let keep = vec![true; self.unsynced_names.len()];
        self.commit_names(&keep);
    }

    /// A change that is kept needs the earlier ones of the same names, on which it builds, and the
    /// removal of a directory needs the removal of its entries.
    pub(super) fn keep_what_they_need(&self, keep: &mut [bool]) {
        // Last to first: an operation only requires earlier ones, which get their turn after it.
        for later in (0..keep.len()).rev() {
            if !keep[later] {
                continue;
            }
            for earlier in 0..later {
                let ops = &self.unsynced_names;
                keep[earlier] = keep[earlier] || needs(&ops[later], &ops[earlier]);
            }
        }
    }

    /// Applies the chosen changes to the durable names, in order, and drops nodes that nothing refers to any
    /// more.
    pub(super) fn commit_names(&mut self, keep: &[bool]) {
        let ops = std::mem::take(&mut self.unsynced_names);
        for (op, keep) in ops.into_iter().zip(keep) {
            if !keep {
                self.unsynced_names.push(op);
                continue;
            }
            for change in &op.changes {
                if let Some(Node::Dir(dir)) = self.nodes.get_mut(&change.dir) {
                    set_name(&mut dir.durable, change);
                }
            }
        }
        self.drop_unreachable();
    }

    fn drop_unreachable(&mut self) {
        let mut reached = BTreeSet::from([ROOT]);
        let mut wanted = vec![ROOT];
        // A pending change holds its directory too: losing it in a crash brings the directory's content back.
        for op in &self.unsynced_names {
            for inode in op.changes.iter().flat_map(|change| {
                change
                    .to
                    .into_iter()
                    .chain(change.removed_dir)
                    .chain([change.dir])
            }) {
                if reached.insert(inode) {
                    wanted.push(inode);
                }
            }
        }
        while let Some(inode) = wanted.pop() {
            if let Some(Node::Dir(dir)) = self.nodes.get(&inode) {
                for below in dir.seen.values().chain(dir.durable.values()) {
                    if reached.insert(*below) {
                        wanted.push(*below);
                    }
                }
            }
        }
        self.nodes.retain(|inode, node| match node {
            Node::File(file) => file.handles > 0 || reached.contains(inode),
            Node::Dir(_) => reached.contains(inode),
        });
    }

    /// A copy of the disk without the open files of the process.
    pub(super) fn without_handles(mut self) -> Self {
        for node in self.nodes.values_mut() {
            if let Node::File(file) = node {
                file.handles = 0;
            }
        }
        self.drop_unreachable();
        self
    }

    /// Paths of all files, as reads see them.
    pub(super) fn paths(&self) -> Vec<std::path::PathBuf> {
        let mut found = Vec::new();
        let mut wanted = vec![(std::path::PathBuf::from("/"), ROOT)];
        while let Some((path, inode)) = wanted.pop() {
            match self.nodes.get(&inode) {
                Some(Node::Dir(dir)) => {
                    wanted.extend(dir.seen.iter().map(|(name, below)| (path.join(name), *below)));
                }
                Some(Node::File(_)) => found.push(path),
                None => {}
            }
        }
        found.sort_unstable();
        found
    }
}

/// Whether [`Disk::open`] creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Create {
    No,
    IfMissing,
    New,
}

impl Found {
    fn becomes(&self, to: Option<Inode>, removed_dir: Option<Inode>) -> NameChange {
        NameChange {
            dir: self.dir,
            name: self.name.clone(),
            to,
            removed_dir,
        }
    }
}

fn set_name(names: &mut BTreeMap<OsString, Inode>, change: &NameChange) {
    match change.to {
        Some(inode) => names.insert(change.name.clone(), inode),
        None => names.remove(&change.name),
    };
}

fn needs(later: &NameOp, earlier: &NameOp) -> bool {
    later.changes.iter().any(|late| {
        earlier.changes.iter().any(|early| {
            (late.dir == early.dir && late.name == early.name) || late.removed_dir == Some(early.dir)
        })
    })
}
