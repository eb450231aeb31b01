// Package files sends files of projects to chats: the files that agents name in their answers, and the files that users
// request with /get and /files. The package also implements /put, which stores a user's file in a project.
package files

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// maxAlbum is Telegram's maximum number of pictures in an album.
const maxAlbum = 10

// Store stores messages that are sent later. See orchestrator.Journal.
type Store interface {
	FinishUpdates(ctx context.Context, ids []int64, notices ...orchestrator.Message) error
}

// Options configures a Sender. All fields except Marks are required.
type Options struct {
	Files    orchestrator.Files
	Messages *message.Messages
	Spool    *message.Spool
	Store    Store
	Marks    bool // agents can send files by naming them in answers; see render.FileMark
	Lang     *lang.Choices
	Log      *slog.Logger
}

// Sender sends files of projects. It is safe for concurrent use.
type Sender struct{ Options }

var _ orchestrator.FileSender = (*Sender)(nil)

// NewSender returns a Sender.
func NewSender(o Options) *Sender { return &Sender{o} }

// SendFiles implements orchestrator.FileSender.
func (s *Sender) SendFiles(ctx context.Context, to orchestrator.ConversationID, at orchestrator.FilePlace, key string,
	files []orchestrator.OutFile) ([]*orchestrator.FileError, error) {
	return s.send(ctx, to, at, key, files, nil)
}

// send implements SendFiles. If some files cannot be sent and answer is not nil, send also calls answer with the
// reasons, and sends the text that answer returns.
func (s *Sender) send(ctx context.Context, to orchestrator.ConversationID, at orchestrator.FilePlace, key string,
	files []orchestrator.OutFile, answer func([]*orchestrator.FileError) string) ([]*orchestrator.FileError, error) {
	if known, err := s.Messages.Composed(ctx, key); err != nil || known {
		return nil, err
	}
	contents, refused, err := s.read(ctx, at, files)
	if err != nil {
		return nil, err
	}
	if answer != nil && len(refused) > 0 {
		contents = append(contents, message.Content{Text: render.Plain(answer(refused))})
	}
	if err := s.store(ctx, to, key, contents); err != nil {
		return nil, err
	}
	return refused, nil
}

// store stores messages, and starts to send them.
func (s *Sender) store(ctx context.Context, to orchestrator.ConversationID, key string,
	contents []message.Content) error {
	if len(contents) == 0 {
		return nil
	}
	var rows []orchestrator.Message
	for n, c := range contents {
		rows = append(rows, message.ComposeFiles(to, key, n, c))
	}
	if err := s.Store.FinishUpdates(ctx, nil, rows...); err != nil {
		s.forget(contents)
		return fmt.Errorf("store files to be sent: %w", err)
	}
	s.Messages.Wake()
	return nil
}

// read copies files to the spool. It returns messages that contain the files, and errors for the files that cannot be
// sent.
func (s *Sender) read(ctx context.Context, at orchestrator.FilePlace,
	files []orchestrator.OutFile) (contents []message.Content, refused []*orchestrator.FileError, err error) {
	seen := map[string]bool{}
	for _, f := range files {
		if seen[f.Path] {
			continue
		}
		seen[f.Path] = true
		if len(seen) > orchestrator.MostFiles {
			refused = append(refused, &orchestrator.FileError{Path: f.Path, Why: orchestrator.FileTooMany})
			break
		}
		file, err := s.readOne(ctx, at, f)
		if why := (*orchestrator.FileError)(nil); errors.As(err, &why) {
			refused = append(refused, why)
			continue
		}
		if err != nil {
			s.forget(contents)
			return nil, nil, err
		}
		caption, rest := captionOf(f.Caption)
		file.Caption = caption
		contents = append(appendFile(contents, file), rest...)
	}
	return contents, refused, nil
}

func (s *Sender) readOne(ctx context.Context, at orchestrator.FilePlace, f orchestrator.OutFile) (message.File, error) {
	read, err := s.Files.Read(ctx, at, f.Path)
	if err != nil {
		return message.File{}, err
	}
	spooled, err := s.Spool.Put(read.Content)
	if err != nil {
		return message.File{}, err
	}
	return message.File{Name: read.Name, Spooled: spooled, Picture: read.Picture}, nil
}

// captionOf splits a text into the caption of a file and messages with the rest of the text.
func captionOf(text string) (caption string, rest []message.Content) {
	parts := render.Split(render.Plain(text), render.CaptionLimit)
	if len(parts) == 0 {
		return "", nil
	}
	var more strings.Builder
	for _, p := range parts[1:] {
		more.WriteString(p.Text.Text + p.Gap)
	}
	for _, p := range render.Split(render.Plain(more.String()), render.FullMessage) {
		rest = append(rest, message.Content{Text: p.Text})
	}
	return parts[0].Text.Text, rest
}

// appendFile adds a file to messages. It adds a picture to the last message, if this message is an album with space.
// Any other file becomes a separate message.
func appendFile(contents []message.Content, f message.File) []message.Content {
	last := len(contents) - 1
	if last >= 0 && f.Picture && isAlbum(contents[last]) && len(contents[last].Files) < maxAlbum {
		contents[last].Files = append(contents[last].Files, f)
		return contents
	}
	return append(contents, message.Content{Text: render.Plain(f.Caption), Files: []message.File{f}})
}

// isAlbum reports whether a message contains pictures, so that further pictures can be added to it.
func isAlbum(c message.Content) bool { return len(c.Files) > 0 && c.Files[0].Picture }

func (s *Sender) forget(contents []message.Content) {
	for _, c := range contents {
		s.Spool.Forget(c.Files...)
	}
}

// Deliver sends the files that the agent named in the answer of a turn, also if the turn failed. A second call for the
// same turn has no effect. If a file cannot be sent, Deliver sends a message with the reason. If a user aborted the
// turn or its delivery, Deliver only sends a message that names the files.
func (s *Sender) Deliver(ctx context.Context, t orchestrator.Turn, o orchestrator.Outcome) error {
	if s == nil || !s.Marks {
		return nil
	}
	var files []orchestrator.OutFile
	for _, m := range render.FileMarks(o.Text) {
		files = append(files, orchestrator.OutFile(m))
	}
	if len(files) == 0 {
		return nil
	}
	if o.State == orchestrator.TurnAborted || o.Announce == orchestrator.Unwanted {
		return s.nameUnsent(ctx, t, files)
	}
	at, err := s.Files.OfTurn(ctx, t)
	if err != nil {
		return err
	}
	_, err = s.send(ctx, t.Prompt.Conversation, at, keyOf(t.ID), files, func(refused []*orchestrator.FileError) string {
		return s.sentences(s.Lang.Of(t.Prompt.Conversation.Chat), refused)
	})
	return err
}

// nameUnsent sends a message that names the files of an aborted turn. It sends none for a quiet turn, because the chat
// shows nothing of such a turn after an abort.
func (s *Sender) nameUnsent(ctx context.Context, t orchestrator.Turn, files []orchestrator.OutFile) error {
	if t.IsQuiet() {
		return nil
	}
	to, key := t.Prompt.Conversation, keyOf(t.ID)
	if known, err := s.Messages.Composed(ctx, key); err != nil || known {
		return err
	}
	var paths []string
	for _, f := range files {
		if !slices.Contains(paths, f.Path) {
			paths = append(paths, f.Path)
		}
	}
	p := s.Lang.Of(to.Chat)
	text := render.Plain(p.Text("files.not-sent", render.Cut(render.OneLine(strings.Join(paths, ", ")), 1000)))
	if path := s.pathForGet(ctx, t, paths); path != "" {
		command := render.Styled(render.Code, "/get "+path)
		text = render.Concat(text, render.Plain(" "), render.Filled(p.Text("files.get-unsent", render.Slot), command))
	}
	return s.store(ctx, to, key, []message.Content{{Text: text, Silent: true}})
}

// pathForGet returns a path with which /get can send one of the files of a turn. The chat may have moved to another
// directory since the turn began, so the path may be absolute. pathForGet returns "" if /get can send none of the files,
// or if the user may not use /get.
func (s *Sender) pathForGet(ctx context.Context, t orchestrator.Turn, paths []string) string {
	// Only users who may use /get can create jobs.
	if !t.Prompt.Rights.OfListed() && !orchestrator.IsJobTurn(t.ID) {
		return ""
	}
	of, err := s.Files.OfTurn(ctx, t)
	if err != nil {
		return ""
	}
	for _, path := range paths[:min(len(paths), orchestrator.MostFiles)] {
		if render.OneLine(path) != path || len(path) > 1000 {
			continue
		}
		at, err := s.Files.OfChat(ctx, t.Prompt.Conversation, path)
		if err == nil && at.Dir != of.Dir && !filepath.IsAbs(path) && !strings.HasPrefix(path, "~") {
			path = filepath.Join(of.Dir, path)
			at, err = s.Files.OfChat(ctx, t.Prompt.Conversation, path)
		}
		if err != nil || at.Sandbox != of.Sandbox {
			continue
		}
		if _, err := s.Files.Read(ctx, at, path); err == nil {
			return path
		}
	}
	return ""
}

func keyOf(turn cli.TurnID) string { return "turn/" + string(turn) }

// sentences explains to users why files cannot be sent.
func (s *Sender) sentences(p lang.Printer, refused []*orchestrator.FileError) string {
	text := ""
	for _, e := range refused {
		s.Log.Info("a file is not sent", "path", e.Path, "why", e.Why, "err", e.Err)
		text += "📎 " + e.Sentence(p) + "\n"
	}
	return strings.TrimSpace(text)
}
