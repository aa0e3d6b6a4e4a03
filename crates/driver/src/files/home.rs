//! Experiments in copies of the project: which VM works where, and how paths are told to the user.

use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::event::Note;
use unflake_core::test::TestId;
use unflake_core::trial::{Trial, VmId};

use crate::cause::find::Reach;
use crate::files::workspace::{Original, Workspace};
use crate::framework::project::Project;
use crate::git::repository::Repository;
use crate::lab::lane::{Lane, State};
use crate::lab::session::{Halt, Session};
use crate::lab::start_error::StartError;
use crate::protocol::messages::Worker;
use crate::vm::event::Happening;

/// The place where the project lives, and from which experiments are copied.
pub(crate) struct Home {
    /// The user's own project.
    pub(crate) project: Project,
    /// The work tree as it was at the start; `None` if experiments run in the user's own files.
    original: Option<Original>,
    /// The user's folders from which the project imports.
    import_roots: Vec<Utf8PathBuf>,
    /// The place of the listing VM's files.
    place: Utf8PathBuf,
    /// A workspace that nobody needs any more: to make one as new costs less than a new one.
    spare: Option<Workspace>,
    /// The user's work tree, if the project is a checkout of another revision.
    pub(crate) away_from: Option<Utf8PathBuf>,
}

impl Home {
    /// The user's own files.
    pub(crate) fn of(project: &Project) -> Self {
        Self {
            project: project.clone(),
            original: None,
            import_roots: Vec::new(),
            place: project.folder().to_owned(),
            spare: None,
            away_from: None,
        }
    }

    /// The root of what is copied: the work tree, or the project's folder.
    fn root(&self) -> &Utf8Path {
        let original = self.original.as_ref();
        original.map_or_else(|| self.project.folder(), |original| original.root())
    }
}

impl Session {
    /// Copies the work tree; from here on VMs work in copies. If it cannot be copied, that is said.
    pub(crate) fn move_in(&mut self) {
        self.move_in_before(None);
    }

    /// Moves the project into a copy, without the files that came after a moment.
    pub(crate) fn move_in_before(&mut self, until: Option<SystemTime>) {
        let folder = self.home.project.folder();
        // Without git the project is its folder.
        let repository = Repository::find(folder).ok().flatten();
        let root = repository.map_or_else(|| folder.to_owned(), |one| one.root().to_owned());
        match Original::copy(&root, until) {
            Ok(original) => self.home.original = Some(original),
            Err(error) => {
                let why = error.to_string();
                self.note(Note::InPlace { why });
            }
        }
    }

    /// Lets VMs look into these folders of the copy first, which stand from its root.
    pub(crate) fn import_first_from(&mut self, folders: &[Utf8PathBuf]) {
        let root = self.home.root();
        self.home.import_roots = folders.iter().map(|folder| root.join(folder)).collect();
    }

    /// The folders of the copy into which VMs must look first, from its root.
    pub(crate) fn imports_first_from(&self) -> Vec<Utf8PathBuf> {
        let inside = |folder: &Utf8PathBuf| {
            folder
                .strip_prefix(self.home.root())
                .ok()
                .map(Utf8Path::to_owned)
        };
        self.home.import_roots.iter().filter_map(inside).collect()
    }

    /// The first VM, in a workspace, with its list of tests.
    ///
    /// A project that is installed in place imports from the user's files: then it is started again,
    /// and looks into the workspace first.
    pub(crate) fn open_lane(&mut self) -> Result<Lane, Halt> {
        self.open_lane_in_sight(|_| {})
    }

    /// Opens a lane as `open_lane` does; `prepare` is called with the place of the files before a VM starts there.
    pub(crate) fn open_lane_in_sight(
        &mut self,
        mut prepare: impl FnMut(&Utf8Path),
    ) -> Result<Lane, Halt> {
        let mut workspace = self.new_workspace()?;
        prepare(&self.place(workspace.as_ref()));
        self.wish.project = self.project_in(workspace.as_ref());
        self.home.place = self.place(workspace.as_ref());
        let mut vm = self.open(true)?;
        let strays = self.stray_imports();
        if workspace.is_some() && !strays.is_empty() {
            self.leave(Some(vm))?;
            self.home.import_roots = strays;
            workspace = self.new_workspace()?;
            prepare(&self.place(workspace.as_ref()));
            self.wish.project = self.project_in(workspace.as_ref());
            self.home.place = self.place(workspace.as_ref());
            vm = self.open(true)?;
        }
        if let Some(workspace) = &mut workspace {
            workspace.mark().map_err(StartError::Scratch)?;
        }
        Ok(Lane::new(vm, workspace, self.worker(0)))
    }

    /// The folders of the project from which the listing VM imports although it works in a copy; those of another
    /// work tree are told as the project's own.
    fn stray_imports(&self) -> Vec<Utf8PathBuf> {
        let root = self.home.root();
        let inside = |folder: &Utf8Path| {
            let away_from = self.home.away_from.as_deref();
            let own = folder.strip_prefix(root).ok();
            let other = away_from.and_then(|other| folder.strip_prefix(other).ok());
            own.or(other).map(|inside| root.join(inside))
        };
        let imported = self.listed().imported_from.iter().map(Utf8Path::new);
        let strays = imported.filter_map(|folder| {
            // The project may be installed by a path that has links in it.
            let real = folder.canonicalize_utf8();
            inside(real.as_deref().unwrap_or(folder)).or_else(|| inside(folder))
        });
        strays.collect()
    }

    /// One more VM for the whole suite, in a workspace of its own; it starts while others work.
    pub(crate) fn open_another_lane(&mut self, worker: Option<Worker>) -> Result<Lane, Halt> {
        let workspace = self.new_workspace()?;
        let vm = self.start_in(workspace.as_ref(), &[])?;
        Ok(Lane::starting(vm, workspace, worker))
    }

    /// A workspace without a VM, which gets one for each of its groups.
    pub(crate) fn open_unused_lane(&mut self, worker: Option<Worker>) -> Result<Lane, Halt> {
        let workspace = self.new_workspace()?;
        let vm = self.fleet.number_unused();
        let mut lane = Lane::new(vm, workspace, worker);
        lane.mark_once()?;
        Ok(lane)
    }

    /// Opens a lane as `open_another_lane` does, and waits until it has listed its tests.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "nobody else works meanwhile"
    )]
    pub(crate) fn open_ready_lane(&mut self) -> Result<Lane, Halt> {
        let mut lane = self.open_another_lane(None)?;
        loop {
            match self.next(None)? {
                Happening::Parsed(vm, _) if vm == lane.vm => self.fleet.collect(vm, None),
                Happening::Ready(vm, _) if vm == lane.vm => {
                    lane.state = State::Idle;
                    lane.mark_once()?;
                    return Ok(lane);
                }
                Happening::Ended(vm, fate) if vm == lane.vm => return Err(self.ended_early(&fate)),
                _ => {}
            }
        }
    }

    /// A VM that has collected these tests and the files before them, and nothing else; `None` if it does
    /// not list them.
    pub(crate) fn open_lane_among(
        &mut self,
        workspace: Option<Workspace>,
        files: &[TestId],
        tests: &[TestId],
    ) -> Result<Option<Lane>, Halt> {
        let project = self.project_in(workspace.as_ref());
        let setup = self.wish.project.setup(self.listed());
        let setup = setup.moved(self.listing_place(), &self.place(workspace.as_ref()));
        let files: Vec<&str> = files.iter().map(TestId::name).collect();
        let Some(start) = project.start_among(&setup, &files, tests) else {
            return Ok(None);
        };
        let process = project.process(&self.fleet.folder(), &start);
        let process = process.map_err(StartError::Scratch)?;
        let vm = self.fleet.spawn(process, Some(start))?;
        self.settle_lane(vm, workspace, tests)
    }

    /// A VM in a workspace that has collected just these tests, or the whole suite; `None` if it does not
    /// list them.
    pub(crate) fn open_lane_in(
        &mut self,
        workspace: Option<Workspace>,
        tests: &[TestId],
        reach: Reach,
    ) -> Result<Option<Lane>, Halt> {
        match reach {
            Reach::Tests => self.open_lane_among(workspace, &[], tests),
            Reach::Suite => {
                let vm = self.start_in(workspace.as_ref(), &[])?;
                self.settle_lane(vm, workspace, tests)
            }
        }
    }

    /// Opens a lane in a new workspace. The whole suite is collected if these tests cannot be collected by themselves.
    pub(crate) fn open_lane_for(&mut self, tests: &[TestId], reach: Reach) -> Result<Lane, Halt> {
        let workspace = self.new_workspace()?;
        match self.open_lane_in(workspace, tests, reach)? {
            Some(lane) => Ok(lane),
            None => self.open_ready_lane(),
        }
    }

    /// A lane of a VM that was just started, once it has listed these tests; `None` if it does not.
    fn settle_lane(
        &mut self,
        vm: VmId,
        workspace: Option<Workspace>,
        tests: &[TestId],
    ) -> Result<Option<Lane>, Halt> {
        if self.await_tests(tests, None, vm)?.is_some() {
            self.leave(Some(vm))?;
            return Ok(None);
        }
        let mut lane = Lane::new(vm, workspace, None);
        lane.mark_once()?;
        Ok(Some(lane))
    }

    /// Starts a VM in a workspace, for the whole suite or, where that is cheaper, for some tests of it.
    pub(crate) fn start_in(
        &mut self,
        workspace: Option<&Workspace>,
        tests: &[TestId],
    ) -> Result<VmId, Halt> {
        let (process, start) = self.process_in(workspace, tests)?;
        Ok(self.fleet.spawn(process, Some(start))?)
    }

    /// A new copy of the work tree; `None` if experiments run in place.
    pub(crate) fn new_workspace(&mut self) -> Result<Option<Workspace>, Halt> {
        if let Some(mut spare) = self.home.spare.take() {
            spare.renew().map_err(StartError::Scratch)?;
            return Ok(Some(spare));
        }
        let original = self.home.original.as_ref();
        let made = original.map(Original::workspace).transpose();
        made.map_err(|error| StartError::Scratch(error).into())
    }

    /// Ends the VM of a lane, and keeps its workspace for the next that is wanted.
    pub(crate) fn leave_lane(&mut self, lane: Lane) -> Result<(), Halt> {
        self.leave(Some(lane.vm))?;
        self.home.spare = lane.workspace;
        Ok(())
    }

    /// The project as it lies in a workspace.
    pub(crate) fn project_in(&self, workspace: Option<&Workspace>) -> Project {
        let Some(workspace) = workspace else {
            return self.home.project.clone();
        };
        let root = self.home.root();
        // The folders of the work tree that PYTHONPATH names, and those from which imports were found to come.
        let named = std::env::var("PYTHONPATH").unwrap_or_default();
        let named = named.split(':').map(Utf8PathBuf::from);
        let named = named.map(|folder| folder.canonicalize_utf8().unwrap_or(folder));
        let named = named.filter(|folder| folder.starts_with(root));
        let roots = named.chain(self.home.import_roots.iter().cloned());
        let roots = roots.map(|folder| {
            let inside = folder.strip_prefix(root).unwrap_or(&folder);
            workspace.files().join(inside)
        });
        let project = self.home.project.moved(root, workspace.files(), roots);
        project.with_temporary(workspace.temporary())
    }

    /// The place of the files of a workspace.
    pub(crate) fn place(&self, workspace: Option<&Workspace>) -> Utf8PathBuf {
        let root = self.home.root();
        workspace.map_or_else(|| root.to_owned(), |workspace| workspace.files().to_owned())
    }

    /// The place of the files of the VM that listed the tests.
    pub(crate) fn listing_place(&self) -> &Utf8Path {
        &self.home.place
    }

    /// A trial in which paths of a copy are told as the user's own.
    pub(crate) fn at_home(&self, workspace: Option<&Workspace>, mut trial: Trial) -> Trial {
        let root = self.home.root();
        if let Some(workspace) = workspace {
            let account = &mut trial.account;
            for text in [&mut account.message, &mut account.text, &mut account.output] {
                *text = workspace.tell(text, root);
            }
            for part in &mut account.parts {
                part.name = workspace.tell(&part.name, root);
            }
        }
        trial
    }

    /// A number that tells one state of the project's files from another; `None` if they were not copied.
    pub(crate) fn fingerprint(&self) -> Option<u64> {
        self.home.original.as_ref()?.fingerprint().ok()
    }

    /// A path of the listing VM as the user's own.
    pub(crate) fn home_path(&self, path: &str) -> String {
        let root = self.home.root();
        let pairs = [
            (Some(&*self.home.place), Some(root)),
            // The things beside the copy are linked there.
            (self.home.place.parent(), root.parent()),
        ];
        let mut own = pairs.into_iter().filter_map(|(place, own)| {
            let inside = Utf8Path::new(path).strip_prefix(place?).ok()?;
            let own = own?.join(inside);
            Some(own.as_str().trim_end_matches('/').to_owned())
        });
        own.next().unwrap_or_else(|| path.to_owned())
    }
}
