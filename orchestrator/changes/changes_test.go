package changes_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/git"
	"ductor/internal/secrets"
	"ductor/orchestrator"
	"ductor/orchestrator/changes"
)

func TestMain(m *testing.M) { clitest.Main(m) }

// memoryStore stores changes in memory.
type memoryStore struct {
	mu  sync.Mutex
	all []orchestrator.TurnChanges
}

func (s *memoryStore) SaveChanges(_ context.Context, c orchestrator.TurnChanges) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.all, func(o orchestrator.TurnChanges) bool { return o.ID == c.ID }); i >= 0 {
		s.all[i] = c
		return nil
	}
	s.all = append(s.all, c)
	return nil
}

func (s *memoryStore) ChangesOf(_ context.Context, id string) (orchestrator.TurnChanges, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.all {
		if c.ID == id {
			return c, nil
		}
	}
	return orchestrator.TurnChanges{}, orchestrator.ErrNoChanges
}

func (s *memoryStore) ListChanges(_ context.Context, in orchestrator.ConversationID, session orchestrator.SessionID,
	_ int) (found []orchestrator.TurnChanges, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range slices.Backward(s.all) {
		if c.Conversation == in && (c.Checkpoint || c.Session == session) {
			found = append(found, c)
		}
	}
	return found, nil
}

func (s *memoryStore) OldChanges(_ context.Context, before time.Time, _ int) (found []orchestrator.TurnChanges, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.all {
		if c.At.Before(before) {
			found = append(found, c)
		}
	}
	return found, nil
}

func (s *memoryStore) DeleteChanges(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(c orchestrator.TurnChanges) bool { return c.ID == id })
	return nil
}

// engine is a conversation that works in a directory.
type engine struct{ root, dir string }

func (e *engine) Status(context.Context, orchestrator.ConversationID) (orchestrator.Status, error) {
	return orchestrator.Status{Dir: e.dir, Session: orchestrator.Session{ID: "s"}}, nil
}

func (e *engine) Directory(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || !cli.Lies(real, e.root) {
		return "", orchestrator.ErrOutsideRoot
	}
	return real, nil
}

type host struct{ launcher cli.Launcher }

func (h host) Launcher(cli.Sandbox) (cli.Launcher, error) { return h.launcher, nil }

// slow is a host on which git waits before it reads files.
type slow struct {
	cli.Launcher
	mu   sync.Mutex
	gate chan struct{} // closed to let git continue
}

func (s *slow) shut() (open func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	s.gate = gate
	return func() { close(gate) }
}

func (s *slow) Start(ctx context.Context, c cli.Command) (cli.Process, error) {
	s.mu.Lock()
	gate := s.gate
	s.mu.Unlock()
	if gate != nil && slices.Contains(c.Args, "add") {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.Launcher.Start(ctx, c)
}

type rig struct {
	*changes.Service
	t      *testing.T
	store  *memoryStore
	engine *engine
	slow   *slow
	ids    int
	later  time.Duration // time since noon

	private   string // directory of ductor for shadow directories
	sandboxes orchestrator.Sandboxes
}

var (
	chat      = orchestrator.ConversationID{Chat: 7}
	otherChat = orchestrator.ConversationID{Chat: -8}
	by        = orchestrator.Press{Conversation: chat, Person: 1, Updates: []int64{1}, Role: orchestrator.RoleUser}
	noon      = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	token     = "a-very-secret-token"
)

func newRig(t *testing.T) *rig {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", base)
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	r := &rig{t: t, store: &memoryStore{}, engine: &engine{root: base, dir: filepath.Join(base, "app")}, slow: &slow{}, private: t.TempDir()}
	r.sh("", `mkdir app; cd app; git init -q -b main; git config user.name Ann; git config user.email a@b; echo one > a.txt; echo '*.log' > .gitignore; git add .; git commit -qm one; echo l > x.log`)
	r.start()
	return r
}

// start creates a Service, like a new process of ductor.
func (r *rig) start() {
	r.slow.Launcher = clitest.Host(r.t)
	r.Service = changes.New(changes.Options{
		Store: r.store, Sandboxes: r.sandboxes, Hold: time.Minute,
		Secrets: func(string) *secrets.Set { return secrets.NewSet(token) },
		Now:     func() time.Time { return noon.Add(r.later) },
		NewID:   func() string { r.ids++; return fmt.Sprint("point-", r.ids) }, Log: slog.New(slog.DiscardHandler),
	})
	r.Attach(r.engine, git.New(host{r.slow}, r.private))
	service := r.Service
	r.t.Cleanup(func() { _ = service.Close(context.Background()) })
}

func (r *rig) sh(below, script string) string {
	r.t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = filepath.Join(r.engine.root, below)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) watch(id string, goesOn bool) orchestrator.TurnWatch {
	return r.Watch(orchestrator.Turn{ID: cli.TurnID(id), Session: "s",
		Prompt: orchestrator.Prompt{Conversation: chat, Text: "Fix  " + id}}, r.engine.dir, goesOn)
}

// turn runs a turn that executes a script.
func (r *rig) turn(id, script string) orchestrator.Changed {
	r.t.Helper()
	w := r.watch(id, false)
	r.AwaitSnapshot(r.t.Context(), cli.TurnID(id), "")
	w.Observe(cli.ToolStarted{ID: "1", Name: "Bash"})
	r.sh("app", script)
	return r.end(w)
}

// end ends a turn and returns its changes.
func (r *rig) end(w orchestrator.TurnWatch) (c orchestrator.Changed) {
	if changed := w.End(); changed != nil {
		c = changed(r.t.Context())
	}
	return c
}

// beside watches a turn of another chat.
func (r *rig) beside(id string) orchestrator.TurnWatch {
	return r.Watch(orchestrator.Turn{ID: cli.TurnID(id), Session: "s",
		Prompt: orchestrator.Prompt{Conversation: otherChat}}, r.engine.dir, false)
}

func (r *rig) expect(what string, err, want error) {
	r.t.Helper()
	if !errors.Is(err, want) {
		r.t.Errorf("%s: %v, and not %v", what, err, want)
	}
}

// A user of the conversation with the right to do so can undo a turn once, redo it once and commit it once, also after
// a restart.
func TestWhatATurnChangedIsUndoneDoneAgainAndCommitted(t *testing.T) {
	r := newRig(t)
	got := r.turn("t1", `echo two >> a.txt; echo n > new.txt; echo ignored > x.log`)
	if got != (orchestrator.Changed{Files: 2, Added: 2, Ignored: true}) {
		t.Fatalf("it changed %+v", got)
	}
	ctx := t.Context()
	_, err := r.Undo(ctx, orchestrator.Press{Conversation: orchestrator.ConversationID{Chat: 8},
		Role: orchestrator.RoleUser}, "t1")
	r.expect("from another chat", err, orchestrator.ErrElsewhere)
	_, err = r.Undo(ctx, orchestrator.Press{Conversation: chat, Role: orchestrator.RoleMember}, "t1")
	r.expect("by a member", err, orchestrator.ErrNotAllowed)
	_, err = r.Redo(ctx, by, "t1")
	r.expect("what is not undone", err, orchestrator.ErrNotUndone)
	_, err = r.Undo(ctx, by, "none")
	r.expect("what is not there", err, orchestrator.ErrNoChanges)
	r.start()
	for range 2 {
		c, err := r.Undo(ctx, by, "t1")
		r.must(err)
		if got := r.sh("app", "cat a.txt x.log; ls"); !c.Undone || got != "one\nignored\na.txt\nx.log\n" {
			t.Errorf("undone, the files are %q", got)
		}
		_, err = r.Undo(ctx, by, "t1")
		r.expect("once more", err, orchestrator.ErrUndone)
		_, err = r.Commit(ctx, by, "t1", "no")
		r.expect("commit what is undone", err, orchestrator.ErrUndone)
		_, err = r.Redo(ctx, by, "t1")
		r.must(err)
		if got := r.sh("app", "cat a.txt new.txt"); got != "one\ntwo\nn\n" {
			t.Errorf("done again, the files are %q", got)
		}
	}
	r.sh("app", "echo mine > mine.txt; git add mine.txt")
	c, err := r.Commit(ctx, by, "t1", " Fix it \n")
	r.must(err)
	if got := r.sh("app", "git log -1 --format='%H %an %s'; git status --porcelain"); got != c.Commit+" Ann Fix it\nA  mine.txt\n" {
		t.Errorf("committed: %q", got)
	}
	_, err = r.Commit(ctx, by, "t1", "again")
	r.expect("commit once more", err, orchestrator.ErrCommitted)
	r.sh("app", "echo since > new.txt")
	_, err = r.Undo(ctx, by, "t1")
	if since := (*orchestrator.ChangedSince)(nil); !errors.As(err, &since) || fmt.Sprint(since.Paths) != "[new.txt]" {
		t.Errorf("what changed since: %v", err)
	}
}

// Git writes where links in .git lead: it appends the user's name in the repository's settings to logs/HEAD. Neither a
// repository nor a turn can use this to write outside, by a commit or by a snapshot.
func TestNoLinkOfARepositoryLeadsOutside(t *testing.T) {
	const logSnapshots = "git config core.logAllRefUpdates always; cd .git/logs; mkdir -p refs/ductor/turns/t1; "
	for what, c := range map[string]struct{ before, during string }{
		"before the turn":    {before: "rm .git/logs/HEAD; ln -s %s .git/logs/HEAD"},
		"a branch":           {before: "cd .git/logs/refs; rm -r heads; mkdir heads; ln -s %s heads/main"},
		"during the turn":    {during: "rm .git/logs/HEAD; ln -s %s .git/logs/HEAD"},
		"the last snapshot":  {during: logSnapshots + "ln -s %s refs/ductor/turns/t1/after"},
		"the first snapshot": {before: logSnapshots + "ln -s %s refs/ductor/turns/t1/before"},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t)
			outside := filepath.Join(t.TempDir(), "rc")
			r.sh("", "echo mine > "+outside)
			r.sh("app", "git config user.name 'x; echo evil #'; "+strings.ReplaceAll(c.before, "%s", outside))
			got := r.turn("t1", "echo two > a.txt; "+strings.ReplaceAll(c.during, "%s", outside))
			if _, err := r.Commit(t.Context(), by, "t1", "fix"); err == nil {
				t.Errorf("a turn is committed that gave %+v", got)
			}
			if c.before != "" && got != (orchestrator.Changed{}) {
				t.Errorf("it mentions changes: %+v", got)
			}
			if got := r.sh("", "cat "+outside); got != "mine\n" {
				t.Errorf("outside there is now %q", got)
			}
		})
	}
}

// forced is a policy in which all works on this host, but each of these directories has a container for jobs that
// require a sandbox.
type forced struct{ dirs []string }

func (f forced) Of(string, orchestrator.ConversationID) cli.Sandbox { return "" }

func (f forced) Forced(dir string, _ orchestrator.ConversationID) (cli.Sandbox, error) {
	for _, d := range f.dirs {
		if cli.Lies(dir, d) {
			return cli.Sandbox(filepath.Base(d)), nil
		}
	}
	return "default", nil
}

// An agent that works in a container of one project cannot make a turn on this host copy the files of another project
// into its repository.
func TestAttackARepositoryThatLeadsToAnotherProject(t *testing.T) {
	const elsewhere = orchestrator.NoUndoPlace
	for plant, why := range map[string]orchestrator.NoUndo{
		"git -C app config core.worktree $P":                  elsewhere,
		"git -C app config core.worktree $P/..":               elsewhere,
		"echo $P/.git > app/.git/commondir":                   elsewhere,
		"rm -r app/.git; echo gitdir: $P/.git > app/.git":     elsewhere,
		"rm -r app/.git; ln -s $P/.git app/.git":              elsewhere,
		"cd app/.git; rm -r objects; ln -s $P/.git/objects .": "",
		// as of any repository outside of the roots
		"git -C app config core.worktree /": "",
		"cd app; git config extensions.worktreeConfig true; git config --worktree core.worktree $P": elsewhere,
		// the Git directory of a worktree of another project
		"rm -r app/.git; git -C private worktree add -q ../x; mv x/.git app": elsewhere,
	} {
		r := newRig(t)
		private := filepath.Join(r.engine.root, "private")
		r.sandboxes = forced{[]string{filepath.Join(r.engine.root, "app"), private}}
		r.start()
		r.sh("", `git init -q private; cd private; echo mine > secret; git add .
			git -c user.name=A -c user.email=a@b commit -qm one; echo more > secret`)
		r.sh("", "P="+private+"; "+plant)
		const list = "find . | sort; find . -type f ! -name a.txt ! -name index -exec cksum {} + | sort"
		r.sh("", "find . -exec touch -h -d 2000-01-01 {} +")
		if got := r.turn("t0", "true"); got.NoUndo != "" {
			t.Errorf("%s: a turn without changes has %+v", plant, got)
		}
		before := r.sh("", list)
		if got := r.turn("t1", "echo two > a.txt"); got.Files != 0 || got.NoUndo != why {
			t.Errorf("%s: the turn has %+v", plant, got)
		}
		if _, err := r.Checkpoint(t.Context(), by, "now"); !errors.Is(err, orchestrator.ErrOutsideRoot) {
			t.Errorf("%s: a checkpoint gives %v", plant, err)
		}
		diff, err := r.DiffSince(t.Context(), by, orchestrator.SinceCommit, "")
		if diff != "" || !errors.Is(err, orchestrator.ErrOutsideRoot) {
			t.Errorf("%s: the diff is %v\n%s", plant, err, diff)
		}
		if d := cmp.Diff(before, r.sh("", list)); d != "" {
			t.Errorf("%s: files changed:\n%s", plant, d)
		}
	}
}

// Linked worktrees of a repository and its submodules have an undo, also where the policy knows the project.
func TestALinkedWorktreeHasItsUndo(t *testing.T) {
	for _, tree := range []string{"app/.worktrees/fix", "app-fix", "app/sub"} {
		r := newRig(t)
		r.sandboxes = forced{[]string{filepath.Join(r.engine.root, "app")}}
		r.start()
		r.sh("app", "git worktree add -q .worktrees/fix; git worktree add -q ../app-fix")
		r.sh("", `git init -q lib; cd lib; echo one > a.txt; git add .
			git -c user.name=A -c user.email=a@b commit -qm one
			cd ../app; git -c protocol.file.allow=always submodule --quiet add ../lib sub`)
		r.engine.dir = filepath.Join(r.engine.root, tree)
		w := r.watch("t1", false)
		r.AwaitSnapshot(t.Context(), "t1", "")
		w.Observe(cli.ToolStarted{ID: "1", Name: "Bash"})
		r.sh(tree, "echo two > a.txt")
		if got := r.end(w); got.Files != 1 || got.NoUndo != "" {
			t.Errorf("%s: the turn has %+v", tree, got)
		}
		if _, err := r.Undo(t.Context(), by, "t1"); err != nil || r.sh(tree, "cat a.txt") != "one\n" {
			t.Errorf("%s: it is undone with %v", tree, err)
		}
	}
}

// A container of a project can write to the Git directory of a linked worktree on this host. It cannot make the worktree
// contain another directory.
func TestAttackTheGitDirectoryOfALinkedWorktree(t *testing.T) {
	for _, plant := range []string{
		"git config extensions.worktreeConfig true; git -C ../fix config --worktree core.worktree $P",
		`git config extensions.worktreeConfig true; git -C ../fix config --worktree core.worktree $P
			echo $P/.git > .git/worktrees/fix/gitdir`,
		"git -C .. init -q private; echo $P/private/.git > .git/worktrees/fix/commondir",
	} {
		r := newRig(t)
		r.sandboxes = forced{[]string{filepath.Join(r.engine.root, "app"), filepath.Join(r.engine.root, "private")}}
		r.start()
		r.sh("app", "git worktree add -q ../fix; P="+r.engine.root+"; "+plant)
		r.engine.dir = filepath.Join(r.engine.root, "fix")
		w := r.watch("t1", false)
		r.AwaitSnapshot(t.Context(), "t1", "")
		w.Observe(cli.ToolStarted{ID: "1", Name: "Bash"})
		r.sh("fix", "echo two > a.txt")
		if got := r.end(w); got.Files != 0 || got.NoUndo != orchestrator.NoUndoPlace {
			t.Errorf("%s: the turn has %+v", plant, got)
		}
	}
}

// Changes in submodules and other nested repositories are undone with the rest; the HEAD of each stays.
func TestRepositoriesWithinAreUndoneToo(t *testing.T) {
	r := newRig(t)
	r.sh("app", `for d in lib sub/deep; do git init -q -b main $d; (cd $d; git config user.name A; git config user.email a@b; echo l > l; git add l; git commit -qm l); done; git add lib 2>/dev/null; git commit -qm lib`)
	got := r.turn("t1", `echo x >> lib/l; echo x > lib/new; (cd sub/deep; echo x >> l; git commit -qam x); echo x >> a.txt`)
	if got.Files != 4 || got.NoUndo != "" {
		t.Errorf("it changed %+v", got)
	}
	_, err := r.Undo(t.Context(), by, "t1")
	r.must(err)
	if got := r.sh("app", "cat lib/l sub/deep/l a.txt; ls lib; git -C sub/deep log --format=%s"); got != "l\nl\none\nl\nx\nl\n" {
		t.Errorf("undone: %q", got)
	}
	diff, err := r.Diff(t.Context(), chat, "t1")
	if err != nil || !strings.Contains(diff, "+++ b/lib/l\n") || !strings.Contains(diff, "+++ b/sub/deep/l\n") {
		t.Errorf("the diff is %v\n%s", err, diff)
	}
}

// A nested repository in which links lead outside has no undo. The rest has.
func TestARepositoryWithinThatLeadsOutsideIsLeftOut(t *testing.T) {
	for _, part := range []string{"objects", "logs/refs"} {
		t.Run(part, func(t *testing.T) {
			r := newRig(t)
			outside := t.TempDir()
			r.sh("app", `git init -q lib; cd lib; git -c user.name=A -c user.email=a@b commit -q --allow-empty -m l
				cp -r .git/`+part+` `+outside+`/part; rm -r .git/`+part+`; ln -s `+outside+`/part .git/`+part)
			before := r.sh("", "find "+outside)
			if got := r.turn("t1", "echo x > a.txt; echo x > lib/l"); got.Files != 1 || got.NoUndo != "" {
				t.Errorf("it changed %+v", got)
			}
			point, err := r.Checkpoint(t.Context(), by, "now")
			if err != nil || len(point.Snapshot.Trees) != 1 {
				t.Errorf("the checkpoint has %+v, %v", point.Snapshot.Trees, err)
			}
			_, err = r.Undo(t.Context(), by, "t1")
			r.must(err)
			if got := r.sh("app", "cat a.txt lib/l"); got != "one\nx\n" {
				t.Errorf("undone: %q", got)
			}
			if after := r.sh("", "find "+outside); after != before {
				t.Errorf("outside there are %s", after)
			}
		})
	}
}

// A turn may take far longer than a write waits for the snapshot before it. It can still be undone.
func TestALongTurnHasItsUndo(t *testing.T) {
	r := newRig(t)
	for i := range 10 {
		turn := fmt.Sprint("t", i)
		w := r.watch(turn, false)
		r.AwaitSnapshot(t.Context(), cli.TurnID(turn), "")
		w.Observe(cli.ToolStarted{ID: "1", Name: "Edit"})
		r.sh("app", fmt.Sprintf("echo %d > a.txt", i))
		r.later += time.Hour
		if got := r.end(w); got.Files != 1 || got.NoUndo != "" {
			t.Fatalf("turn %d says %+v", i, got)
		}
	}
}

// A tool that started before the snapshot was ready, and asks before it writes, has waited for the snapshot.
func TestAToolThatAsksHasItsUndo(t *testing.T) {
	r := newRig(t)
	open := r.slow.shut()
	w := r.watch("t1", false)
	w.Observe(cli.ToolStarted{ID: "1", Name: "Edit"})
	open()
	w.Observe(cli.ApprovalAsked{ID: "a", Started: "1"})
	r.AwaitSnapshot(t.Context(), "t1", "a")
	r.sh("app", "echo asked > a.txt")
	if got := r.end(w); got.Files != 1 || got.NoUndo != "" {
		t.Errorf("it says %+v", got)
	}
}

// A turn that writes before its snapshot is ready cannot be undone, and reports that. A turn that only reads, changes
// nothing or works in no repository reports nothing.
func TestATurnThatWritesTooEarlyHasNoUndo(t *testing.T) {
	r := newRig(t)
	open := r.slow.shut()
	w := r.watch("t1", false)
	w.Observe(cli.ToolStarted{ID: "1", Name: "Bash"})
	w.Observe(cli.ToolStarted{ID: "2", Name: "Edit"})
	w.Observe(cli.ApprovalAsked{ID: "a", Started: "2"})
	r.sh("app", "echo early > a.txt")
	open()
	if got := r.end(w); got != (orchestrator.Changed{NoUndo: orchestrator.NoUndoLate}) {
		t.Errorf("it says %+v", got)
	}
	open = r.slow.shut()
	w = r.watch("t1b", false)
	w.Observe(cli.ToolStarted{ID: "1", Name: "read"})
	w.Observe(cli.ToolChanged{ToolStarted: cli.ToolStarted{ID: "1", Name: "execute"}})
	r.sh("app", "echo changed > a.txt")
	open()
	if got := r.end(w); got != (orchestrator.Changed{NoUndo: orchestrator.NoUndoLate}) {
		t.Errorf("of a tool that turns into one that writes, it says %+v", got)
	}
	open = r.slow.shut()
	w = r.watch("t2", false)
	w.Observe(cli.ToolStarted{ID: "1", Name: "Read"})
	w.Observe(cli.ToolStarted{ID: "2", Name: "Edit"})
	// The tool waits for the answer, and the answer waits for the snapshot.
	w.Observe(cli.ApprovalAsked{ID: "a", Started: "2"})
	open()
	r.AwaitSnapshot(t.Context(), "t2", "a")
	r.sh("app", "echo held > a.txt")
	if got := r.end(w); got.Files != 1 || got.NoUndo != "" {
		t.Errorf("a write that was held: %+v", got)
	}
	if got := r.turn("t3", "true"); got != (orchestrator.Changed{}) {
		t.Errorf("nothing changed: %+v", got)
	}
	r.sh("", "mkdir plain")
	r.engine.dir = filepath.Join(r.engine.root, "plain")
	if got := r.turn("t4", "echo x > ../plain/x"); got != (orchestrator.Changed{}) {
		t.Errorf("no repository: %+v", got)
	}
	if refs := r.sh("app", "git for-each-ref --format='%(refname)' refs/ductor | grep -v t2 || true"); strings.Contains(refs, "t1") {
		t.Errorf("what is of no use is kept: %s", refs)
	}
}

// The changes of turns that work in the same files at the same time cannot be told apart, so neither turn can be
// undone. Nothing can be undone while one of them runs.
func TestTurnsAtTheSameTime(t *testing.T) {
	r := newRig(t)
	r.turn("t0", "echo zero > a.txt")
	one, two := r.watch("t1", false), r.watch("t2", false)
	for id, w := range map[cli.TurnID]orchestrator.TurnWatch{"t1": one, "t2": two} {
		r.AwaitSnapshot(t.Context(), id, "")
		w.Observe(cli.ToolStarted{ID: "1", Name: "Bash"})
	}
	_, err := r.Undo(t.Context(), by, "t0")
	r.expect("while turns run", err, orchestrator.ErrTurnRuns)
	r.sh("app", "echo x > a.txt")
	for _, w := range []orchestrator.TurnWatch{one, two} {
		if got := r.end(w); got.NoUndo != orchestrator.NoUndoShared || got.Files != 1 {
			t.Errorf("it says %+v", got)
		}
	}
}

// Turns in different sandboxes write to the same files.
func TestTurnsInDifferentEnvironmentsAtTheSameTime(t *testing.T) {
	r := newRig(t)
	r.turn("t0", "echo zero > a.txt")
	other := r.Watch(orchestrator.Turn{ID: "o", Session: "s", Sandbox: "web/1",
		Prompt: orchestrator.Prompt{Conversation: otherChat}}, r.engine.dir, false)
	r.AwaitSnapshot(t.Context(), "o", "")
	other.Observe(cli.ToolStarted{ID: "1", Name: "Bash"})
	_, err := r.Commit(t.Context(), by, "t0", "c")
	r.expect("while a turn runs in a sandbox", err, orchestrator.ErrTurnRuns)
	got := r.turn("t1", "echo x > a.txt")
	if got.NoUndo != orchestrator.NoUndoShared || got.With != otherChat {
		t.Errorf("beside a turn in a sandbox: %+v", got)
	}
	r.end(other)
}

// A turn that waits for its user or only reads has written nothing, so it does not prevent the undo of other turns.
// Once it writes, the error names its chat.
func TestATurnThatWritesNothingLeavesOthersTheirUndo(t *testing.T) {
	r := newRig(t)
	r.turn("t0", "echo zero > zero.txt")
	other := r.beside("o")
	r.AwaitSnapshot(t.Context(), "o", "")
	other.Observe(cli.ToolStarted{ID: "1", Name: "Read"})
	other.Observe(cli.ToolStarted{ID: "2", Name: "mcp__ductor__list_sessions"})
	other.Observe(cli.ToolStarted{ID: "3", Name: "Bash"})
	other.Observe(cli.ApprovalAsked{ID: "a", Started: "3", Tool: "Bash"})
	if got := r.turn("t1", "echo one > one.txt"); got.Files != 1 || got.NoUndo != "" {
		t.Errorf("while another turn waits for its user: %+v", got)
	}
	for _, turn := range []cli.TurnID{"t1", "t0"} {
		_, err := r.Undo(t.Context(), by, turn)
		r.must(err)
	}
	mine := r.watch("t2", false)
	r.AwaitSnapshot(t.Context(), "t2", "")
	r.AwaitSnapshot(t.Context(), "o", "a") // it is allowed
	_, err := r.Redo(t.Context(), by, "t0")
	r.expect("while another turn writes", err, orchestrator.ErrTurnRuns)
	if writes := (*orchestrator.TurnWrites)(nil); !errors.As(err, &writes) || writes.In != otherChat {
		t.Errorf("it does not say which chat: %v", err)
	}
	mine.Observe(cli.ToolStarted{ID: "1", Name: "Edit"})
	r.sh("app", "echo mine > mine.txt; echo other > other.txt")
	if got := r.end(mine); got.NoUndo != orchestrator.NoUndoShared || got.With != otherChat {
		t.Errorf("beside a turn that wrote: %+v", got)
	}
	if got := r.end(other); got.NoUndo != orchestrator.NoUndoShared || got.With != chat || got.Files != 2 {
		t.Errorf("the other turn: %+v", got)
	}
}

// An undo while a turn waits does not count as a change of that turn.
func TestAnUndoIsNoChangeOfATurnThatWaits(t *testing.T) {
	r := newRig(t)
	r.turn("t0", "echo zero > a.txt")
	other := r.beside("o")
	r.AwaitSnapshot(t.Context(), "o", "")
	other.Observe(cli.ToolStarted{ID: "1", Name: "Bash"})
	other.Observe(cli.ApprovalAsked{ID: "a", Started: "1", Tool: "Bash"})
	_, err := r.Undo(t.Context(), by, "t0")
	r.must(err)
	r.AwaitSnapshot(t.Context(), "o", "a")
	r.sh("app", "echo other > other.txt")
	if got := r.end(other); got.Files != 1 || got.NoUndo != "" {
		t.Errorf("it says %+v", got)
	}
}

// A turn whose tools only read reports no missing undo, however long the snapshot took. A turn that wrote does, even if
// it only deleted files.
func TestATurnThatChangedNothingSaysNothing(t *testing.T) {
	r := newRig(t)
	r.sh("app", "echo gone > gone.txt; git add .; git commit -qm two; find . -exec touch -h -d '1 hour ago' {} +")
	for i, c := range []struct {
		name, tool, script string
		want               orchestrator.NoUndo
	}{
		{"a command that looks", "Bash", "git log; cat a.txt", ""},
		{"a tool of ductor", "mcp_ductor_send_message", "true", ""},
		{"a command that deletes", "Bash", "rm gone.txt", orchestrator.NoUndoLate},
		{"a command that writes", "Bash", "find . -path ./.git -prune -o -exec touch -h -d '1 hour ago' {} +; echo x > a.txt", orchestrator.NoUndoLate},
	} {
		r.later = time.Since(noon)
		open := r.slow.shut()
		w := r.watch(fmt.Sprint("t", i), false)
		w.Observe(cli.ToolStarted{ID: "1", Name: c.tool})
		r.sh("app", c.script)
		w.Observe(cli.ToolEnded{ID: "1"})
		changed := w.End()
		open()
		if changed == nil {
			changed = func(context.Context) (c orchestrator.Changed) { return c }
		}
		if got := changed(t.Context()); got != (orchestrator.Changed{NoUndo: c.want}) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// Undoing a turn that continued after a restart restores the files from before the restart. Pruning deletes old records
// with their snapshots.
func TestATurnThatGoesOnAndWhatIsForgotten(t *testing.T) {
	r := newRig(t)
	w := r.watch("t1", false)
	r.AwaitSnapshot(t.Context(), "t1", "")
	w.Observe(cli.ToolStarted{ID: "1", Name: "Bash"})
	r.sh("app", "echo first > a.txt")
	w.Leave()
	r.start()
	w = r.watch("t1", true)
	r.sh("app", "echo second > b.txt")
	w.Observe(cli.ToolStarted{ID: "1", Name: "Bash"})
	r.AwaitSnapshot(t.Context(), "t1", "")
	if got := r.end(w); got.Files != 2 {
		t.Errorf("it changed %+v", got)
	}
	_, err := r.Undo(t.Context(), by, "t1")
	r.must(err)
	if got := r.sh("app", "cat a.txt; ls"); got != "one\na.txt\nx.log\n" {
		t.Errorf("undone: %q", got)
	}
	if n, err := r.Prune(t.Context(), noon.Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("forgot %d, %v", n, err)
	}
	if refs := r.sh("app", "git for-each-ref refs/ductor"); refs != "" {
		t.Errorf("it keeps %s", refs)
	}
}

// A viewer sees only the changes of the last turn. The owner's later work by hand in the same repository is private.
func TestADiffForAViewerEndsWithTheTurn(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	r.turn("t1", "echo two > a.txt")
	r.sh("app", "echo 100000 > salaries.csv; echo private >> a.txt")
	viewer := by
	viewer.Role = orchestrator.RoleViewer
	for path, want := range map[string]string{"": "+two", "a.txt": "+two", "salaries.csv": "", "nothere.txt": ""} {
		diff, err := r.DiffSince(ctx, viewer, orchestrator.SinceTurn, path)
		if err != nil || (want == "") != (diff == "") || !strings.Contains(diff, want) ||
			strings.Contains(diff, "100000") || strings.Contains(diff, "private") {
			t.Errorf("/diff %s of a viewer: %v\n%s", path, err, diff)
		}
	}
	for _, since := range []orchestrator.DiffSince{orchestrator.SinceSession, orchestrator.SinceCommit} {
		if diff, err := r.DiffSince(ctx, viewer, since, ""); !errors.Is(err, orchestrator.ErrNotAllowed) || diff != "" {
			t.Errorf("since the %s: %v\n%s", since, err, diff)
		}
	}
	if diff, err := r.DiffSince(ctx, by, orchestrator.SinceTurn, ""); err != nil || !strings.Contains(diff, "100000") {
		t.Errorf("/diff of a user: %v\n%s", err, diff)
	}
}

// A user can return to checkpoints and turns, and back again; diffs contain no secrets.
func TestCheckpointsAndDiffs(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	point, err := r.Checkpoint(ctx, by, " good  state ")
	r.must(err)
	r.turn("t1", "echo "+token+" > a.txt; rm .gitignore")
	r.turn("t2", "echo b > b.txt")
	for since, want := range map[orchestrator.DiffSince]string{orchestrator.SinceTurn: "b.txt", orchestrator.SinceSession: ".gitignore a.txt b.txt x.log", orchestrator.SinceCommit: ".gitignore a.txt b.txt x.log"} {
		diff, err := r.DiffSince(ctx, by, since, "")
		r.must(err)
		var names []string
		for line := range strings.SplitSeq(diff, "\n") {
			if _, name, ok := strings.Cut(line, " b/"); ok && strings.HasPrefix(line, "diff ") {
				names = append(names, name)
			}
		}
		if strings.Join(names, " ") != want || strings.Contains(diff, token) {
			t.Errorf("since the %s: %s\n%s", since, names, diff)
		}
	}
	if diff, err := r.DiffSince(ctx, by, orchestrator.SinceCommit, "b.txt"); err != nil ||
		strings.Count(diff, "diff --git") != 1 {
		t.Errorf("of one path: %v\n%s", err, diff)
	}
	for path, want := range map[string]error{
		"nothere.txt": orchestrator.ErrNoFile, "none/of/it": orchestrator.ErrNoFile,
		"b.txt": nil, ".gitignore": nil, "../none": nil,
		filepath.Join(t.TempDir(), "none"): nil,
	} {
		if _, err := r.DiffSince(ctx, by, orchestrator.SinceSession, path); !errors.Is(err, want) {
			t.Errorf("/diff %s: %v, want %v", path, err, want)
		}
	}
	to, before, err := r.Return(ctx, by, point.ID, orchestrator.BeforeTurn)
	r.must(err)
	if got := r.sh("app", "cat a.txt .gitignore; ls"); to.Title != "good state" || got != "one\n*.log\na.txt\nx.log\n" {
		t.Errorf("%s: %q", to.Title, got)
	}
	if _, _, err := r.Return(ctx, by, before.ID, orchestrator.BeforeTurn); err != nil {
		t.Error(err)
	}
	if got := r.sh("app", "cat a.txt; ls"); got != token+"\na.txt\nb.txt\nx.log\n" {
		t.Errorf("back again: %q", got)
	}
	for side, want := range map[orchestrator.ReturnTo]string{orchestrator.BeforeTurn: "a.txt\nx.log\n", orchestrator.AfterTurn: "a.txt\nb.txt\nx.log\n"} {
		_, now, err := r.Return(ctx, by, "t2", side)
		r.must(err)
		if got := r.sh("app", "ls"); got != want {
			t.Errorf("%s the second turn there are %q", side, got)
		}
		_, _, err = r.Return(ctx, by, now.ID, orchestrator.BeforeTurn)
		r.must(err)
	}
	all, err := r.Checkpoints(ctx, chat)
	r.must(err)
	if len(all) != 9 || all[8].ID != point.ID {
		t.Errorf("there are %+v", all)
	}
}
