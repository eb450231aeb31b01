package project_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"ductor/bot/project"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// fakeProjects has projects as users see them.
type fakeProjects struct {
	projects []orchestrator.Project
	trees    []orchestrator.Worktree
	dirty    map[string]bool
	dir      string
	worked   map[string]bool // directories in which the conversation has a session
	back     string          // where the conversation works after its worktree was removed
	err      error
}

func (b *fakeProjects) Projects(context.Context) ([]orchestrator.Project, error) {
	return b.projects, b.err
}

func (b *fakeProjects) OpenProject(_ context.Context, _ orchestrator.Press, name, branch string) (string, error) {
	for _, p := range b.projects {
		if p.Name == name {
			b.dir = strings.TrimSuffix(p.Dir+"@"+branch, "@")
			return b.dir, b.err
		}
	}
	return "", orchestrator.ErrNoProject
}

func (b *fakeProjects) Worktrees(context.Context, orchestrator.ConversationID) ([]orchestrator.Worktree, error) {
	return b.trees, b.err
}

func (b *fakeProjects) OpenWorktree(_ context.Context, _ orchestrator.Press, dir string) error {
	b.dir = dir
	return b.err
}

func (b *fakeProjects) RemoveWorktree(_ context.Context, _ orchestrator.Press, dir string, changes orchestrator.Changes) error {
	if b.dirty[dir] && changes != orchestrator.DropChanges {
		return orchestrator.ErrDirtyWorktree
	}
	for i, w := range b.trees {
		if w.Dir == dir {
			b.trees = append(b.trees[:i:i], b.trees[i+1:]...)
			if w.Contains(b.dir) {
				b.dir = b.back
			}
		}
	}
	return b.err
}

func (b *fakeProjects) continueButton(_ context.Context, _ orchestrator.ConversationID, dir string) (tgapi.Button,
	bool) {
	return tgapi.Button{Text: "▶ of " + dir}, b.worked[dir]
}

// newSession follows each answer that names another directory.
const newSession = " Your next message begins a new session; /sessions has the earlier ones."

type rig struct {
	*testing.T
	fakeProjects *fakeProjects
	screen       *project.Screen
	page         tgapi.Page
	said         string
	messages     []orchestrator.Message
}

func newRig(t *testing.T) *rig {
	b := &fakeProjects{
		projects: []orchestrator.Project{{Name: "app", Dir: "/src/app"}, {Name: "web", Dir: "/src/web"}}, dir: "/src/app", dirty: map[string]bool{},
		trees: []orchestrator.Worktree{
			{Dir: "/src/app", Branch: "main", Main: true, Merged: true}, {Dir: "/src/app/.worktrees/new", Branch: "new"},
			{Dir: "/src/app/.worktrees/old", Branch: "old", Merged: true}, {Dir: "/src/app/.worktrees/lost", Branch: "lost", Gone: true},
		},
	}
	return &rig{T: t, fakeProjects: b, screen: project.New(project.Options{
		Projects: b, Status: func(context.Context, orchestrator.ConversationID) (orchestrator.Status, error) {
			return orchestrator.Status{Dir: b.dir}, nil
		},
		Continue: b.continueButton,
	})}
}

func (r *rig) command(args, want string) {
	r.Helper()
	page, err := r.screen.Command(r.Context(), orchestrator.Press{}, args)
	if err != nil || !strings.Contains(page.Text, want) {
		r.Errorf("/project %s says %q, %v", args, page.Text, err)
	}
	r.page = page
}

// buttons returns the labels of the buttons, one line for each row.
func (r *rig) buttons() string {
	var rows []string
	for _, row := range r.page.Keyboard {
		var texts []string
		for _, b := range row {
			texts = append(texts, b.Text)
		}
		rows = append(rows, strings.Join(texts, "|"))
	}
	return strings.Join(rows, "\n")
}

func (r *rig) press(row, column int) {
	r.Helper()
	data := strings.TrimPrefix(r.page.Keyboard[row][column].Data, project.Action+":")
	a, err := r.screen.Press(r.Context(), orchestrator.Press{}, data)
	if err != nil {
		r.Fatal(err)
	}
	r.messages = a.Messages
	if r.said = a.Text; a.Edit.Text != "" {
		r.page = a.Edit
	}
}

func TestAWalkThroughTheProjects(t *testing.T) {
	r := newRig(t)
	r.command("", "The agent works in /src/app")
	if got := r.buttons(); got != "app ✓\nweb\n🌿 Worktrees" {
		t.Errorf("the buttons are\n%s", got)
	}
	r.press(1, 0)
	if r.fakeProjects.dir != "/src/web" || r.said != "From now on the agent works in /src/web."+newSession ||
		!strings.Contains(r.buttons(), "web ✓") {
		t.Errorf("it works in %s: %q\n%s", r.fakeProjects.dir, r.said, r.buttons())
	}
	r.command("app@fix", "From now on the agent works in /src/app@fix.")
	r.command("app@fix", "The agent already works in /src/app@fix.")
	r.command("none", `There is no project "none"`)
	r.command("", "The agent works in")
	r.press(2, 0)
	if got := r.buttons(); got != "main\nnew\nold|🗑\n🗑 lost\n‹ Back" {
		t.Errorf("the buttons are\n%s", got)
	}
	r.press(1, 0)
	if r.fakeProjects.dir != "/src/app/.worktrees/new" || !strings.Contains(r.buttons(), "new ✓") {
		t.Errorf("it works in %s\n%s", r.fakeProjects.dir, r.buttons())
	}
	r.fakeProjects.dirty["/src/app/.worktrees/old"] = true
	r.press(2, 1)
	if !strings.Contains(r.page.Text, "/src/app/.worktrees/old has uncommitted changes") ||
		len(r.fakeProjects.trees) != 4 {
		t.Errorf("it asks %q", r.page.Text)
	}
	r.press(0, 0)
	if r.said != "Removed. The branch old is still there." || strings.Contains(r.page.Text, "worktrees/old") {
		t.Errorf("it says %q\n%s", r.said, r.page.Text)
	}
	r.press(2, 0)
	if len(r.fakeProjects.trees) != 2 {
		t.Errorf("there are %+v", r.fakeProjects.trees)
	}
}

// The folder in which the chat works is removed only after a question, and a message names where the chat works then.
func TestTheRemovalOfTheOwnFolder(t *testing.T) {
	for _, dir := range []string{"/src/app/.worktrees/old", "/src/app/.worktrees/old/docs"} {
		t.Run(dir, func(t *testing.T) {
			r := newRig(t)
			r.fakeProjects.dir = dir
			r.command("", "The agent works in")
			r.press(2, 0)
			r.press(2, 1)
			if !strings.Contains(r.page.Text, "This chat works in /src/app/.worktrees/old") ||
				len(r.fakeProjects.trees) != 4 {
				t.Fatalf("it asks %q", r.page.Text)
			}
			r.fakeProjects.back = "/src/app"
			r.press(0, 0)
			if len(r.fakeProjects.trees) != 3 || len(r.messages) != 1 ||
				!strings.Contains(string(r.messages[0].Content), "works in /src/app, on main."+newSession) {
				t.Errorf("%d worktrees, messages %+v", len(r.fakeProjects.trees), r.messages)
			}
		})
	}
}

// Whoever goes back to a folder has a button that continues the newest session there.
func TestTheWayBackToASession(t *testing.T) {
	r := newRig(t)
	r.fakeProjects.worked = map[string]bool{"/src/app": true, "/src/app/.worktrees/new": true}
	r.command("web", "From now on the agent works in /src/web.")
	if got := r.buttons(); got != "" {
		t.Errorf("in a new folder the buttons are\n%s", got)
	}
	r.command("app", "From now on the agent works in /src/app.")
	if got := r.buttons(); got != "▶ of /src/app" {
		t.Errorf("back in the folder the buttons are\n%s", got)
	}
	r.command("app", "The agent already works in /src/app.")
	if got := r.buttons(); got != "" {
		t.Errorf("where the chat works already the buttons are\n%s", got)
	}
	r.command("web", "From now on")
	r.command("", "The agent works in")
	r.press(0, 0)
	if got := r.buttons(); got != "▶ of /src/app\napp ✓\nweb\n🌿 Worktrees" {
		t.Errorf("after a tap on the project the buttons are\n%s", got)
	}
	r.press(3, 0)
	r.press(1, 0)
	if got := r.buttons(); !strings.HasPrefix(got, "▶ of /src/app/.worktrees/new\nmain\nnew ✓\n") {
		t.Errorf("after a tap on the branch the buttons are\n%s", got)
	}
}

// Only the code that sends an answer to a press shortens it, to Telegram's limit.
func TestAnAnswerToAPressIsWhole(t *testing.T) {
	r := newRig(t)
	r.fakeProjects.projects[1].Dir = "/src/" + strings.Repeat("x", 190)
	r.command("", "The agent works in")
	r.press(1, 0)
	if want := "From now on the agent works in " + r.fakeProjects.projects[1].Dir + "." + newSession; r.said != want {
		t.Errorf("it says %q", r.said)
	}
}

func TestWhatIsRefusedIsSaid(t *testing.T) {
	r := newRig(t)
	r.command("", "The agent works in")
	for err, want := range map[error]string{
		orchestrator.ErrNoProject: "no longer", orchestrator.ErrStillOpen: "Something is running there", orchestrator.ErrNoRepository: "no Git repository",
		orchestrator.ErrOutsideRoot: "starts outside",
	} {
		r.fakeProjects.err = err
		if r.press(2, 0); !strings.Contains(r.said, want) {
			t.Errorf("%v says %q", err, r.said)
		}
	}
	r.fakeProjects.err = orchestrator.ErrBadBranch
	r.command("app@-x", `"-x" cannot be the name of a branch`)
	r.fakeProjects.err = errors.New("the disk is gone")
	if _, err := r.screen.Command(t.Context(), orchestrator.Press{}, "app"); !errors.Is(err, r.fakeProjects.err) {
		t.Errorf("another failure: %v", err)
	}
	r.fakeProjects.err = nil
	for _, data := range []string{"", "o:0000", "w:0000", "?:x"} {
		if a, err := r.screen.Press(t.Context(), orchestrator.Press{}, data); err != nil || !strings.Contains(a.Text, "no longer") {
			t.Errorf("%q says %q, %v", data, a.Text, err)
		}
	}
}

func TestTheAnswerNamesANewPlace(t *testing.T) {
	box, machine := orchestrator.Status{Sandbox: "box/1/0", Permission: cli.Bypass}, orchestrator.Status{Permission: cli.Ask}
	for _, c := range []struct {
		before, now orchestrator.Status
		want        string
	}{
		{box, machine, " That's on this machine. bypass doesn't apply there: the agent asks before it writes or runs anything."},
		{machine, orchestrator.Status{Sandbox: "box/1/0", Permission: cli.Ask}, " That's in the sandbox box."},
		{machine, machine, ""},
		{box, box, ""},
	} {
		c.now.Dir = "/web"
		want := "From now on the agent works in /web." + c.want + newSession
		s := project.New(project.Options{
			Continue: (&fakeProjects{}).continueButton,
			Status: func(context.Context, orchestrator.ConversationID) (orchestrator.Status, error) {
				return c.now, nil
			},
		})
		if got := s.Opened(t.Context(), orchestrator.Press{}, c.before, "/web"); got.Text != want {
			t.Errorf("from %q to %q it says %q", c.before.Sandbox, c.now.Sandbox, got.Text)
		}
	}
}
