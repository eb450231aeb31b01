// Package project implements the commands /project and /newtopic. With /project, users list projects, select the
// project or Git worktree in which a conversation works, and remove worktrees. With /newtopic, they open a topic for a
// project. The package also shows the activity of topics in their icons. It returns texts and handles buttons. It sends
// no messages.
package project

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// Action is the first part of the data of all buttons of this package.
const Action = "G"

// op is the operation of a button. The button's data consists of the op and a key.
type op string

const (
	opList   op = "l" // key: the number of the page
	opOpen   op = "o" // key: the hash of the project's directory
	opTrees  op = "t"
	opTree   op = "w" // key: the hash of the worktree's directory
	opRemove op = "r" // removes a worktree; if it is the conversation's directory, asks the user first
	opLeave  op = "v" // removes the worktree that is the conversation's directory
	opDrop   op = "R" // removes a worktree and discards its uncommitted changes
)

// Options configures a Screen. All fields are required.
type Options struct {
	Projects orchestrator.Projects
	Status   func(ctx context.Context, in orchestrator.ConversationID) (orchestrator.Status, error)
	Topics   Topics
	Lang     *lang.Choices
}

// Screen lets users choose projects. Its buttons contain a hash of the directory of a project or worktree, so they also
// work after a restart. It is safe for concurrent use.
type Screen struct{ o Options }

// New returns a Screen.
func New(o Options) *Screen { return &Screen{o} }

// Command handles "/project". Without arguments, it lists the projects. With the name of a project, it sets the
// conversation's directory to the project. "/project app@branch" sets the directory to the worktree of the branch.
func (s *Screen) Command(ctx context.Context, by orchestrator.Press, args string) (tgapi.Page, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	name, branch, _ := strings.Cut(strings.TrimSpace(args), "@")
	if name == "" {
		return s.list(ctx, by, 0)
	}
	before, err := s.o.Status(ctx, by.Conversation)
	if err != nil {
		return tgapi.Page{}, err
	}
	dir, err := s.o.Projects.OpenProject(ctx, by, name, branch)
	if text := s.refusal(p, name, branch, err); text != "" {
		return tgapi.Page{Text: text}, nil
	}
	return tgapi.Page{Text: s.opened(ctx, by, before, dir)}, err
}

// opened returns a text with the directory in which the conversation works now.
func (s *Screen) opened(ctx context.Context, by orchestrator.Press, before orchestrator.Status, dir string) string {
	p := s.o.Lang.Of(by.Conversation.Chat)
	now, err := s.o.Status(ctx, by.Conversation)
	if err != nil { // ignored, because the project was opened anyway
		return p.Text("project.opened", dir)
	}
	return ChosenDir(p, before, now)
}

// ChosenDir returns a text for a conversation whose directory a user has chosen.
func ChosenDir(p lang.Printer, before, now orchestrator.Status) string {
	if now.Dir == before.Dir {
		return p.Text("project.already-there", now.Dir)
	}
	// The notice after a tap shows only the start of a long text. So a changed permission mode (see moved) comes before
	// the new session, which matters less.
	return p.Text("project.opened", now.Dir) + moved(p, before, now) + " " + p.Text("project.new-session")
}

// moved returns a text about the environment in which the conversation works now, such as a sandbox. It returns "" if
// the environment did not change.
func moved(p lang.Printer, before, now orchestrator.Status) string {
	place := render.Place(p, now.Sandbox.Name())
	switch {
	case now.Sandbox == before.Sandbox:
		return ""
	case orchestrator.Grants(before.Permission) && !orchestrator.Grants(now.Permission):
		return " " + p.Text("common.moved-asks", place, before.Permission)
	}
	return " " + p.Text("common.moved-to", place)
}

// refusal explains to users why a project could not be opened. It returns "" for unexpected errors.
func (s *Screen) refusal(p lang.Printer, name, branch string, err error) string {
	foreign := (*orchestrator.ForeignRepository)(nil)
	switch {
	case errors.As(err, &foreign):
		return render.ForeignRepository(p, foreign.Dir)
	case errors.Is(err, orchestrator.ErrNoProject):
		return p.Text("project.unknown", render.Cut(name, 100))
	case errors.Is(err, orchestrator.ErrBadBranch):
		return p.Text("project.bad-branch", render.Cut(branch, 100))
	case errors.Is(err, orchestrator.ErrNoRepository):
		return p.Text("project.no-repository")
	case errors.Is(err, orchestrator.ErrOutsideRoot):
		return p.Text("project.outside")
	}
	return ""
}

// Press handles a button of this package. data is the button's data without the action.
func (s *Screen) Press(ctx context.Context, by orchestrator.Press, data string) (tgapi.Answer, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	what, key, _ := strings.Cut(data, ":")
	a, err := s.act(ctx, by, op(what), key)
	switch {
	case errors.Is(err, orchestrator.ErrNoProject):
		return tgapi.Stale(p), nil
	case errors.Is(err, orchestrator.ErrStillOpen):
		return tgapi.Answer{Text: p.Text("project.runs")}, nil
	case errors.Is(err, orchestrator.ErrNoRepository), errors.Is(err, orchestrator.ErrOutsideRoot):
		return tgapi.Answer{Text: s.refusal(p, "", "", err)}, nil
	}
	return a, err
}

func (s *Screen) act(ctx context.Context, by orchestrator.Press, what op, key string) (a tgapi.Answer, err error) {
	switch what {
	case opList:
		page, _ := tgapi.ButtonNumber(key)
		a.Edit, err = s.list(ctx, by, page)
	case opOpen:
		a, err = s.open(ctx, by, key)
	case opTrees:
		a.Edit, err = s.trees(ctx, by)
	case opTree, opRemove, opLeave, opDrop:
		a, err = s.tree(ctx, by, what, key)
	default:
		a = tgapi.Stale(s.o.Lang.Of(by.Conversation.Chat))
	}
	return a, err
}

func button(text string, what op, key string) []tgapi.Button {
	return []tgapi.Button{tgapi.NewButton(text, Action, string(what)+":"+key)}
}

// list returns one page of the list of projects.
func (s *Screen) list(ctx context.Context, by orchestrator.Press, page int) (tgapi.Page, error) {
	all, err := s.o.Projects.Projects(ctx)
	if err != nil {
		return tgapi.Page{}, err
	}
	st, err := s.o.Status(ctx, by.Conversation)
	if err != nil {
		return tgapi.Page{}, err
	}
	dir := st.Dir
	p := s.o.Lang.Of(by.Conversation.Chat)
	text := p.Text("project.list", dir)
	if len(all) == 0 {
		text = p.Text("project.none", dir)
	}
	from, to, pager := tgapi.Paged(p, page, len(all), func(page int) string {
		return button("", opList, strconv.Itoa(page))[0].Data
	})
	var k tgapi.Keyboard
	for _, one := range all[from:to] {
		name := render.Cut(one.Name, 60)
		if dir == one.Dir {
			name += " ✓"
		}
		k = append(k, button(name, opOpen, tgapi.Digest(one.Dir)))
	}
	k = append(k, pager...)
	return tgapi.Page{Text: text, Keyboard: append(k, button(p.Text("project.worktrees"), opTrees, ""))}, nil
}

func (s *Screen) open(ctx context.Context, by orchestrator.Press, key string) (tgapi.Answer, error) {
	all, err := s.o.Projects.Projects(ctx)
	if err != nil {
		return tgapi.Answer{}, err
	}
	i := slices.IndexFunc(all, func(p orchestrator.Project) bool { return tgapi.Digest(p.Dir) == key })
	if i < 0 {
		return tgapi.Answer{}, orchestrator.ErrNoProject
	}
	before, err := s.o.Status(ctx, by.Conversation)
	if err != nil {
		return tgapi.Answer{}, err
	}
	dir, err := s.o.Projects.OpenProject(ctx, by, all[i].Name, "")
	if err != nil {
		return tgapi.Answer{}, err
	}
	page, err := s.list(ctx, by, tgapi.PageOf(i))
	return tgapi.Answer{Text: s.opened(ctx, by, before, dir), Edit: page}, err
}

const treesShown = 30

// trees lists the repository's worktrees. Worktrees with a merged branch or a missing directory have a button that
// removes them.
func (s *Screen) trees(ctx context.Context, by orchestrator.Press) (tgapi.Page, error) {
	all, err := s.o.Projects.Worktrees(ctx, by.Conversation)
	if err != nil {
		return tgapi.Page{}, err
	}
	st, err := s.o.Status(ctx, by.Conversation)
	if err != nil {
		return tgapi.Page{}, err
	}
	dir := st.Dir
	p := s.o.Lang.Of(by.Conversation.Chat)
	text := []string{p.Text("project.trees")}
	var k tgapi.Keyboard
	for _, w := range all[:min(len(all), treesShown)] {
		branch := branchName(p, w)
		line := branch + ": " + w.Dir
		var row []tgapi.Button
		if !w.Gone {
			row = button(branch+sign(w.Dir == dir), opTree, tgapi.Digest(w.Dir))
		}
		switch {
		case w.Main:
		case w.Gone:
			line += " (" + p.Text("project.gone") + ")"
			row = append(row, button("🗑 "+branch, opRemove, tgapi.Digest(w.Dir))...)
		case w.Merged:
			line += " (" + p.Text("project.merged") + ")"
			row = append(row, button("🗑", opRemove, tgapi.Digest(w.Dir))...)
		}
		text, k = append(text, line), append(k, row)
	}
	return tgapi.Page{
		Text: strings.Join(text, "\n"), Keyboard: append(k, button(p.Text("common.back"), opList, "0")),
	}, nil
}

// branchName returns the branch of a worktree for users.
func branchName(p lang.Printer, w orchestrator.Worktree) string {
	return cmp.Or(render.Cut(w.Branch, 60), p.Text("project.no-branch"))
}

func sign(current bool) string {
	if current {
		return " ✓"
	}
	return ""
}

// tree opens or removes a worktree. It first asks the user to confirm the removal if the worktree has uncommitted
// changes, or if the conversation works in it or below it.
func (s *Screen) tree(ctx context.Context, by orchestrator.Press, what op, key string) (a tgapi.Answer, err error) {
	all, err := s.o.Projects.Worktrees(ctx, by.Conversation)
	if err != nil {
		return tgapi.Answer{}, err
	}
	i := slices.IndexFunc(all, func(w orchestrator.Worktree) bool { return tgapi.Digest(w.Dir) == key })
	if i < 0 {
		return tgapi.Answer{}, orchestrator.ErrNoProject
	}
	before, err := s.o.Status(ctx, by.Conversation)
	if err != nil {
		return tgapi.Answer{}, err
	}
	p, w := s.o.Lang.Of(by.Conversation.Chat), all[i]
	own := !w.Main && w.Contains(before.Dir)
	if own && what == opRemove {
		return confirm(p, p.Text("project.really-remove", w.Dir), button(p.Text("project.remove"), opLeave, key)), nil
	}
	changes := orchestrator.KeepChanges
	switch what {
	case opTree:
		err = s.o.Projects.OpenWorktree(ctx, by, w.Dir)
		a.Text = s.opened(ctx, by, before, w.Dir)
	case opDrop:
		changes = orchestrator.DropChanges
		fallthrough
	default:
		a.Text, err = p.Text("project.removed", w.Branch), s.o.Projects.RemoveWorktree(ctx, by, w.Dir, changes)
	}
	if errors.Is(err, orchestrator.ErrDirtyWorktree) {
		return confirm(p, p.Text("project.really-drop", w.Dir), button(p.Text("project.drop"), opDrop, key)), nil
	}
	if err != nil {
		return tgapi.Answer{}, err
	}
	if own && what != opTree {
		text, err := s.left(ctx, by, w, all)
		if err != nil {
			return tgapi.Answer{}, err
		}
		a.Messages = append(a.Messages, message.Compose(by.Conversation, message.Content{Text: render.Plain(text)}))
	}
	a.Edit, err = s.trees(ctx, by)
	return a, err
}

// confirm returns a page that asks the user to confirm an operation on a worktree.
func confirm(p lang.Printer, question string, yes []tgapi.Button) tgapi.Answer {
	return tgapi.Answer{Edit: tgapi.Page{Text: question, Keyboard: tgapi.Keyboard{
		yes, button(p.Text("common.back"), opTrees, ""),
	}}}
}

// left returns a text for a conversation whose worktree was removed. The text contains the directory and the branch in
// which the conversation works now. all contains the worktrees from before the removal.
func (s *Screen) left(ctx context.Context, by orchestrator.Press, removed orchestrator.Worktree,
	all []orchestrator.Worktree) (string, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	now, err := s.o.Status(ctx, by.Conversation)
	if err != nil {
		return "", err
	}
	var at orchestrator.Worktree
	if i := slices.IndexFunc(all, func(w orchestrator.Worktree) bool { return w.Dir == now.Dir }); i >= 0 {
		at = all[i]
	}
	return p.Text("project.removed-own", branchName(p, removed), now.Dir, branchName(p, at)) + " " +
		p.Text("project.new-session"), nil
}
