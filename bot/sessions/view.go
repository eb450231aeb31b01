package sessions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
	"ductor/orchestrator/fence"
)

// Limits of a page. The lengths of texts are in characters.
const (
	titleShown   = 64
	excerptShown = 160
	saidShown    = 500
	perPage      = 8
	turnsShown   = 200 // maximum number of turns from which users can choose one to fork
)

// list returns a page of the list of a conversation's sessions.
func (s *Screen) list(ctx context.Context, in orchestrator.ConversationID, l listed) (tgapi.Page, error) {
	p := s.o.Lang.Of(in.Chat)
	found, more, err := s.o.Sessions.FindSessions(ctx, orchestrator.SessionQuery{
		Conversation: in, Words: l.words, Archived: l.archived, Offset: l.page * perPage, Limit: perPage,
	})
	if err != nil {
		return tgapi.Page{}, err
	}
	st, err := s.o.Status(ctx, in)
	if err != nil {
		return tgapi.Page{}, err
	}
	text := []string{s.head(p, l, len(found) > 0)}
	var keyboard tgapi.Keyboard
	for i, f := range found {
		name := fmt.Sprintf("%d. %s%s", l.page*perPage+i+1, pin(f.Session),
			render.Cut(s.title(p, f.Session), titleShown))
		if f.Session.ID == st.Session.ID {
			name += " ✓"
		}
		text = append(text, "", name, "    "+s.about(p, f.Session))
		if f.Excerpt != "" {
			text = append(text, "    “"+render.Cut(f.Excerpt, excerptShown)+"”")
		}
		keyboard = append(keyboard, []tgapi.Button{newButton(name, opOpen, string(f.Session.ID), "")})
	}
	return tgapi.Page{Text: strings.Join(text, "\n"), Keyboard: append(keyboard, s.navigation(p, l, more)...)}, nil
}

func (s *Screen) head(p lang.Printer, l listed, some bool) string {
	switch {
	case l.words != "" && some:
		return p.Text("sessions.list-found", l.words)
	case l.words != "":
		return p.Text("sessions.none-found", l.words)
	case l.archived && some:
		return p.Text("sessions.list-archived")
	case l.archived:
		return p.Text("sessions.none-archived")
	case some:
		return p.Text("sessions.list")
	}
	return p.Text("sessions.none")
}

// arrows returns the buttons that lead to the previous and the next page.
func arrows(page int, more bool, button func(sign string, to int) tgapi.Button) tgapi.Keyboard {
	var row []tgapi.Button
	if page > 0 {
		row = append(row, button("‹", page-1))
	}
	if more {
		row = append(row, button("›", page+1))
	}
	if len(row) == 0 {
		return nil
	}
	return tgapi.Keyboard{row}
}

// navigation returns the buttons that lead to other pages and other lists.
func (s *Screen) navigation(p lang.Printer, l listed, more bool) tgapi.Keyboard {
	k := arrows(l.page, more, func(sign string, to int) tgapi.Button {
		next := l
		next.page = to
		return newButton(sign, opList, "", next.arg())
	})
	elsewhere := []tgapi.Button{newButton(p.Text("sessions.elsewhere-button"), opElsewhere, "0", "")}
	if l.words != "" {
		return append(k, elsewhere)
	}
	other, text := listed{archived: !l.archived}, p.Text("sessions.archived-button")
	if l.archived {
		text = p.Text("sessions.others-button")
	}
	k = append(k, []tgapi.Button{newButton(text, opList, "", other.arg())})
	if !l.archived {
		k = append(k, elsewhere, []tgapi.Button{newButton(p.Text("sessions.terminal-button"), opTerminal, "", "")})
	}
	return k
}

// page returns the page of a session.
func (s *Screen) page(ctx context.Context, p lang.Printer, now orchestrator.Session) (tgapi.Page, error) {
	st, err := s.o.Status(ctx, now.Conversation)
	if err != nil {
		return tgapi.Page{}, err
	}
	entries, err := s.o.Sessions.Turns(ctx, now.Conversation, now.ID, turnsShown)
	if err != nil {
		return tgapi.Page{}, err
	}
	text := []string{pin(now) + s.title(p, now), s.about(p, now)}
	var names []string
	for _, agent := range now.Agents(entries) {
		names = append(names, render.AgentName(p, agent))
	}
	if len(names) > 0 {
		text = append(text, p.Text("sessions.agents", strings.Join(names, ", ")))
	}
	if now.ID == st.Session.ID {
		text = append(text, p.Text("sessions.current"))
	}
	for _, t := range entries[max(len(entries)-1, 0):] {
		text = append(text, "", p.Text("sessions.last-said"),
			"> "+render.Cut(kind(p, t)+prompt(p, t), saidShown))
		if t.Outcome.Text != "" {
			text = append(text, render.Cut(render.Markdown(t.Outcome.Text).Text, saidShown))
		}
	}
	return tgapi.Page{Text: strings.Join(text, "\n"), Keyboard: s.buttons(p, now, st.Session.ID)}, nil
}

func (s *Screen) buttons(p lang.Printer, now orchestrator.Session, current orchestrator.SessionID) (k tgapi.Keyboard) {
	row := func(buttons ...tgapi.Button) { k = append(k, buttons) }
	button := func(text string, does op) tgapi.Button { return newButton(text, does, string(now.ID), "") }
	pinText, archiveText := p.Text("sessions.pin"), p.Text("sessions.archive")
	if now.Pinned {
		pinText = p.Text("sessions.unpin")
	}
	if now.Archived {
		archiveText = p.Text("sessions.unarchive")
	}
	if now.ID != current {
		row(button(p.Text("sessions.resume"), opResume))
	}
	row(button(pinText, opPin), button(archiveText, opArchive))
	row(button(p.Text("sessions.fork"), opTurns), button(p.Text("sessions.rename"), opRename))
	if s.o.Files != nil {
		row(s.o.Files(p, now.ID))
	}
	row(button(p.Text("sessions.export"), opExport))
	row(button(p.Text("sessions.delete"), opDelete))
	row(newButton(p.Text("common.back"), opList, "", listed{archived: now.Archived}.arg()))
	return k
}

// turns returns the list of a session's turns, newest first. The button of a turn forks the session after this turn.
func (s *Screen) turns(ctx context.Context, in orchestrator.ConversationID, id orchestrator.SessionID,
	page int) (tgapi.Page, error) {
	p := s.o.Lang.Of(in.Chat)
	all, err := s.o.Sessions.Turns(ctx, in, id, turnsShown)
	if err != nil {
		return tgapi.Page{}, err
	}
	from, to, pager := tgapi.Paged(p, page, len(all), func(page int) string {
		return newButton("", opTurns, string(id), strconv.Itoa(page)).Data
	})
	var k tgapi.Keyboard
	for i := from; i < to; i++ {
		t := all[len(all)-1-i]
		text := p.Moment(t.Queued.Local()) + " " + render.Cut(kind(p, t)+prompt(p, t), titleShown)
		k = append(k, []tgapi.Button{newButton(text, opFork, string(t.ID), "")})
	}
	return tgapi.Page{
		Text: p.Text("sessions.which-turn"), Keyboard: append(append(k, pager...), []tgapi.Button{OpenButton(p, id)}),
	}, nil
}

// prompt returns the prompt of an entry in one line. For a prompt without text, it returns the names of the files.
func prompt(p lang.Printer, t orchestrator.Turn) string {
	if t.Wants.Task == cli.TaskCompact {
		return p.Text("turn.compact-title")
	}
	var names []string
	for _, a := range t.Prompt.Attachments {
		names = append(names, "📎 "+a.Name)
	}
	return Title(p, cmp.Or(render.OneLine(fence.Words(t.Prompt.Text)), strings.Join(names, ", ")))
}

// kind returns a prefix that describes the kind of an entry. It returns "" for a turn.
func kind(p lang.Printer, t orchestrator.Turn) string {
	model := render.ModelText(p, t.Agent, t.Model)
	switch t.Entry.Kind {
	case orchestrator.ConsultationEntry:
		return p.Text("sessions.asked", model) + " "
	case orchestrator.WorkEntry:
		return p.Text("sessions.worked", model) + " "
	}
	return ""
}

func (s *Screen) deletePage(p lang.Printer, now orchestrator.Session) tgapi.Page {
	yes := newButton(p.Text("sessions.delete"), opDeleted, string(now.ID), "")
	return tgapi.Page{
		Text:     p.Text("sessions.really-delete", render.Cut(s.title(p, now), titleShown)),
		Keyboard: tgapi.Keyboard{{yes}, {OpenButton(p, now.ID)}},
	}
}

// forkShown is the maximum length of a fork's title in a short answer to a press, in characters.
const forkShown = 40

// inUse returns the reason why a session cannot be deleted, or why it cannot move to another conversation.
func inUse(p lang.Printer, err error) string {
	use := &orchestrator.SessionInUse{}
	if !errors.As(err, &use) {
		return p.Text("sessions.in-use")
	}
	switch use.Why {
	case orchestrator.UsedByNextPrompt:
		return p.Text("sessions.in-use-now")
	case orchestrator.UsedByJob:
		return p.Text("sessions.in-use-job")
	case orchestrator.UsedByTurn:
		return p.Text("sessions.in-use-turn")
	}
	if use.Here {
		return p.Text("sessions.in-use-fork", render.Cut(Title(p, use.Fork), forkShown))
	}
	return p.Text("sessions.in-use-elsewhere")
}

func pin(s orchestrator.Session) string {
	if s.Pinned {
		return "📌 "
	}
	return ""
}

func (s *Screen) title(p lang.Printer, of orchestrator.Session) string { return Title(p, of.Title) }

// Title returns the title of a session or turn. It returns a placeholder for an empty title.
func Title(p lang.Printer, title string) string {
	if title == "" {
		return p.Text("sessions.no-title")
	}
	return title
}

func lastUse(of orchestrator.Session) time.Time {
	if of.Used.IsZero() {
		return of.Created
	}
	return of.Used
}

// about describes a session in one line: the time of its last use, its size and its directory.
func (s *Screen) about(p lang.Printer, of orchestrator.Session) string {
	parts := []string{s.ago(p, lastUse(of))}
	if counts := Counts(p, of); counts != "" {
		parts = append(parts, counts)
	}
	return p.List(append(parts, of.Dir)...)
}

func (s *Screen) ago(p lang.Printer, at time.Time) string {
	ago := s.o.Now().Sub(at)
	if ago < time.Minute {
		return p.Text("sessions.just-now")
	}
	return p.Text("sessions.ago", p.Rounded(ago))
}

// Counts describes the size of a session: the number of its messages, and their cost and tokens. It omits unknown
// values, and returns "" for a new session.
func Counts(p lang.Printer, of orchestrator.Session) string {
	var counts []string
	if of.Totals.Messages > 0 {
		counts = append(counts, p.Text("sessions.messages", of.Totals.Messages))
	}
	if of.Totals.CostUSD > 0 {
		counts = append(counts, p.Cost(of.Totals.CostUSD))
	}
	if of.Totals.Tokens > 0 {
		counts = append(counts, p.Tokens(of.Totals.Tokens))
	}
	return p.List(counts...)
}
