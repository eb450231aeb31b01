package changes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ductor/bot/message"
	"ductor/bot/picture"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// maxRows is the maximum number of lines of a diff in a picture. More lines would be too small to read on a phone.
const maxRows = 60

func (s *Screen) diffOf(ctx context.Context, by orchestrator.Press, messageID int, dark bool,
	id string) (tgapi.Answer, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	text, err := s.o.Changes.Diff(ctx, by.Conversation, cli.TurnID(id))
	if err != nil {
		return tgapi.Answer{}, err
	}
	other := button(p.Text("changes.dark"), opDarkDiff, id)
	if dark {
		other = button(p.Text("changes.light"), opDiff, id)
	}
	return s.show(by, messageID, text, look{themeOf(dark), []tgapi.Button{other}, nil})
}

// look defines the appearance and the buttons of a diff.
type look struct {
	theme picture.Theme
	other []tgapi.Button // button that shows this picture in the other theme
	since []tgapi.Button // buttons that select the older state of the files; see sinceRow
}

func themeOf(dark bool) picture.Theme {
	if dark {
		return picture.Dark
	}
	return picture.Light
}

// show returns a message with a diff. If the diff is short, the message contains a picture of it. Otherwise, it
// contains the diff as a file.
func (s *Screen) show(by orchestrator.Press, messageID int, diff string, as look) (tgapi.Answer, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	if strings.TrimSpace(diff) == "" {
		return tgapi.Answer{Text: p.Text("changes.same")}, nil
	}
	files, added, removed := count(diff)
	c := message.Content{
		Text: render.Plain(p.Text("changes.files", files, added, removed)), ReplyTo: messageID,
		Files: []message.File{{Name: "changes.diff", Content: strings.ToValidUTF8(diff, "�")}},
	}
	drawn, ok, err := []byte(nil), false, error(nil)
	if s.o.Spool != nil {
		drawn, ok, err = picture.Diff(as.theme, diff, maxRows, s.words(p))
	}
	if err != nil {
		return tgapi.Answer{}, fmt.Errorf("draw a diff: %w", err)
	}
	if !ok {
		c.Keyboard = rowsOf(as.since)
		return tgapi.Answer{Messages: []orchestrator.Message{message.Compose(by.Conversation, c)}}, nil
	}
	spooled, err := s.o.Spool.Put(drawn)
	if err != nil {
		return tgapi.Answer{}, fmt.Errorf("keep a picture: %w", err)
	}
	c.Files = []message.File{{Name: "changes.png", Spooled: spooled, Picture: true}}
	c.Keyboard = rowsOf(as.since, as.other)
	return tgapi.Answer{
		Messages: []orchestrator.Message{message.ComposeFiles(by.Conversation, "diff/"+fmt.Sprint(by.Updates), 0, c)},
	}, nil
}

// rowsOf returns a keyboard with the rows that are not empty.
func rowsOf(rows ...[]tgapi.Button) (k tgapi.Keyboard) {
	for _, row := range rows {
		if len(row) > 0 {
			k = append(k, row)
		}
	}
	return k
}

func (s *Screen) words(p lang.Printer) picture.Words {
	return picture.Words{
		New: p.Text("changes.new"), Deleted: p.Text("changes.deleted"), Binary: p.Text("changes.binary"),
		Was:  p.Text("changes.was"),
		Mode: p.Text("changes.mode"), Line: p.Text("changes.line"),
	}
}

// count returns the number of files, added lines and removed lines in a unified diff.
func count(diff string) (files, added, removed int) {
	for line := range strings.SplitSeq(diff, "\n") {
		switch {
		case strings.HasPrefix(line, "diff --git "):
			files++
		case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			removed++
		}
	}
	return files, added, removed
}

// Diff handles "/diff". It shows what has changed since the start of the last turn that changed files. If no turn
// changed files, it shows the changes since the last commit. Users who may not reach files see only what that turn
// changed. If path is not empty, it shows only the changes of that file or directory.
func (s *Screen) Diff(ctx context.Context, by orchestrator.Press, path string) (tgapi.Answer, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	if s.o.Changes == nil {
		return tgapi.Answer{Text: p.Text("changes.no-repository")}, nil
	}
	path = strings.TrimSpace(path)
	a, err := s.since(ctx, by, 0, orchestrator.SinceTurn, false, path)
	if errors.Is(err, orchestrator.ErrNoChanges) && by.May(orchestrator.ReachFiles) {
		a, err = s.since(ctx, by, 0, orchestrator.SinceCommit, false, path)
	}
	if errors.Is(err, orchestrator.ErrNoChanges) {
		return tgapi.Answer{Text: p.Text("changes.same")}, nil
	}
	if why := s.why(by.Conversation, err); why != "" {
		return tgapi.Answer{Text: why}, nil
	}
	return a, err
}

// sinceOf returns the DiffSince that starts with the given letter. The data of a button contains only this letter.
func sinceOf(first byte) (orchestrator.DiffSince, bool) {
	for _, one := range []orchestrator.DiffSince{
		orchestrator.SinceTurn, orchestrator.SinceSession, orchestrator.SinceCommit,
	} {
		if one[0] == first {
			return one, true
		}
	}
	return "", false
}

// sinceRow returns the buttons that select the older state for a diff with the current state.
func sinceRow(p lang.Printer, selected orchestrator.DiffSince, data string) (row []tgapi.Button) {
	for _, one := range []struct {
		since orchestrator.DiffSince
		text  lang.Key
	}{
		{orchestrator.SinceTurn, "changes.since-turn"},
		{orchestrator.SinceSession, "changes.since-session"},
		{orchestrator.SinceCommit, "changes.since-commit"},
	} {
		text := p.Text(one.text)
		if one.since == selected {
			text = "✓ " + text
		}
		row = append(row, button(text, opSince, string(one.since[0])+data))
	}
	return row
}

func (s *Screen) pressSince(ctx context.Context, by orchestrator.Press, messageID int,
	data string) (tgapi.Answer, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	if len(data) < 2 {
		return tgapi.Stale(p), nil
	}
	since, ok := sinceOf(data[0])
	if !ok {
		return tgapi.Stale(p), nil
	}
	return s.since(ctx, by, messageID, since, data[1] == 'd', data[2:])
}

// since shows the changes since an earlier state of the files. The message has buttons that select other states.
func (s *Screen) since(ctx context.Context, by orchestrator.Press, messageID int, since orchestrator.DiffSince,
	dark bool, path string) (tgapi.Answer, error) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	diff, err := s.o.Changes.DiffSince(ctx, by, since, path)
	if errors.Is(err, orchestrator.ErrNotAllowed) {
		return tgapi.Answer{Text: p.Text("common.not-for-viewers")}, nil
	}
	missing := errors.Is(err, orchestrator.ErrNoFile)
	if err != nil && !missing {
		return tgapi.Answer{}, err
	}
	theme, other, label := "l", "d", p.Text("changes.dark")
	if dark {
		theme, other, label = "d", "l", p.Text("changes.light")
	}
	as := look{theme: themeOf(dark)}
	if again := button(label, opSince, string(since[0])+other+path); len(again.Data) <= tgapi.DataLimit {
		as.other = []tgapi.Button{again}
		if by.May(orchestrator.ReachFiles) {
			as.since = sinceRow(p, since, theme+path)
		}
	} // else the path is too long for the data of a button
	if strings.TrimSpace(diff) == "" {
		text := p.Text("changes.same")
		if missing {
			text = p.Text("changes.no-file", render.ShortLine(path, 200))
		}
		c := message.Content{Text: render.Plain(text), ReplyTo: messageID, Keyboard: rowsOf(as.since)}
		return tgapi.Answer{Messages: []orchestrator.Message{message.Compose(by.Conversation, c)}}, nil
	}
	return s.show(by, messageID, diff, as)
}
