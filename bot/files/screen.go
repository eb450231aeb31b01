package files

import (
	"context"
	"crypto/rand"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"ductor/bot/message"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/lang"
	"ductor/orchestrator"
)

// Action is the first part of the data of all buttons of this package.
const Action = "F"

// Screen implements /get, /put and /files. Its buttons contain a random number, and Screen stores in memory which
// directory belongs to each number. Buttons do nothing after a restart, in another chat, or after the message has
// changed. Screen is safe for concurrent use.
type Screen struct {
	*Sender

	mu    sync.Mutex
	views map[string]view // views by the random number in their buttons
}

// NewScreen returns a Screen. It returns nil if s is nil, because no files can be sent without a Sender.
func NewScreen(s *Sender) *Screen {
	if s == nil {
		return nil
	}
	return &Screen{Sender: s, views: map[string]view{}}
}

// maxViews is the maximum number of views in memory, for all chats together.
const maxViews = 256

// view is the directory that a message shows.
type view struct {
	conversation orchestrator.ConversationID
	dir          string // absolute path; empty for the list of roots
	title        string // text of the message; if it is empty, the message shows the path of dir
	roots        []string
	entries      []orchestrator.FileEntry
	page         int
}

// manyEntries is the number of entries at which a page warns that the directory may contain more. ductor reads only a
// limited number of entries.
const manyEntries = 800

// Operations of the buttons.
const (
	opEntry = "e"
	opPage  = "p"
	opUp    = "u"
	opClose = "x"
)

// Get handles "/get PATH". It sends the file, or lists the directory.
func (s *Screen) Get(ctx context.Context, by orchestrator.Press, path string) (tgapi.Answer, error) {
	p := s.Lang.Of(by.Conversation.Chat)
	if path == "" {
		return tgapi.Answer{Text: p.Text("files.how-to-get")}, nil
	}
	a, err := s.get(ctx, by, path)
	why := (*orchestrator.FileError)(nil)
	switch {
	case !errors.As(err, &why):
	case why.Why == orchestrator.FileDirectory:
		return s.Browse(ctx, by, path)
	case why.Why == orchestrator.FileNotThere:
		return s.suggest(ctx, by, why), nil
	}
	return refused(p)(a, err)
}

// suggest answers a request for a file that does not exist. It offers files of the same name below the conversation's
// directory, or mentions /files.
func (s *Screen) suggest(ctx context.Context, by orchestrator.Press, missing *orchestrator.FileError) tgapi.Answer {
	p := s.Lang.Of(by.Conversation.Chat)
	none := tgapi.Answer{Text: missing.Sentence(p) + "\n" + p.Text("files.see-files")}
	at, err := s.Files.OfChat(ctx, by.Conversation, "")
	if err != nil {
		return none
	}
	found := s.find(ctx, at, filepath.Base(missing.Path))
	if len(found) == 0 {
		return none
	}
	return tgapi.Answer{Edit: s.show(view{
		conversation: by.Conversation, dir: at.Dir, roots: at.Roots, entries: found,
		title: missing.Sentence(p) + "\n" + p.Text("files.same-name"),
	})}
}

// Limits of the method find.
const (
	maxFound    = 3
	maxSearched = 40 // directories
)

// find returns files with the given name below at.Dir, first those in the upper directories. Their names are paths
// relative to at.Dir. It omits what List omits, such as links.
func (s *Screen) find(ctx context.Context, at orchestrator.FilePlace, name string) (found []orchestrator.FileEntry) {
	dirs := []string{"."}
	for n := 0; n < len(dirs) && n < maxSearched; n++ {
		entries, err := s.Files.List(ctx, at, filepath.Join(at.Dir, dirs[n]))
		if err != nil {
			continue
		}
		for _, e := range entries {
			path := filepath.Join(dirs[n], e.Name)
			switch {
			case e.Dir:
				dirs = append(dirs, path)
			case strings.EqualFold(e.Name, name):
				e.Name = path
				found = append(found, e)
			}
			if len(found) == maxFound {
				return found
			}
		}
	}
	return found
}

func (s *Screen) get(ctx context.Context, by orchestrator.Press, path string) (tgapi.Answer, error) {
	at, err := s.Files.OfChat(ctx, by.Conversation, path)
	if err != nil {
		return tgapi.Answer{}, err
	}
	f, err := s.readOne(ctx, at, orchestrator.OutFile{Path: path})
	if err != nil {
		return tgapi.Answer{}, err
	}
	row := message.ComposeFiles(by.Conversation, "get/"+rand.Text(), 0, message.Content{Files: []message.File{f}})
	return tgapi.Answer{
		Text: s.Lang.Of(by.Conversation.Chat).Text("files.comes", f.Name), Messages: []orchestrator.Message{row},
	}, nil
}

// refused returns a function that turns an *orchestrator.FileError into an answer with a text for the user. The
// function does not change other errors.
func refused(p lang.Printer) func(tgapi.Answer, error) (tgapi.Answer, error) {
	return func(a tgapi.Answer, err error) (tgapi.Answer, error) {
		if why := (*orchestrator.FileError)(nil); errors.As(err, &why) {
			return tgapi.Answer{Text: why.Sentence(p)}, nil
		}
		return a, err
	}
}

// Put handles "/put [PATH]". It writes the file in a user's message to the project. If path is empty, the project's
// file gets the name of the file in the message.
func (s *Screen) Put(ctx context.Context, by orchestrator.Press, path, name string,
	content []byte) (tgapi.Answer, error) {
	p := s.Lang.Of(by.Conversation.Chat)
	at, err := s.Files.OfChat(ctx, by.Conversation, path)
	if err != nil {
		return tgapi.Answer{}, err
	}
	made, err := s.Files.Write(ctx, at, path, name, content)
	return refused(p)(tgapi.Answer{Text: p.Text("files.put", made)}, err)
}

// Browse handles "/files [PATH]". It lists the given directory, or the conversation's directory if there is no
// argument. If the path is a file, Browse sends the file.
func (s *Screen) Browse(ctx context.Context, by orchestrator.Press, path string) (tgapi.Answer, error) {
	at, err := s.Files.OfChat(ctx, by.Conversation, path)
	if err != nil {
		return tgapi.Answer{}, err
	}
	dir := path
	if !filepath.IsAbs(dir) && !strings.HasPrefix(dir, "~") {
		dir = filepath.Join(at.Dir, dir)
	}
	a, err := s.list(ctx, by, filepath.Clean(dir))
	if why := (*orchestrator.FileError)(nil); errors.As(err, &why) && why.Why == orchestrator.FileNoFolder {
		if file, notFile := s.get(ctx, by, path); notFile == nil {
			return file, nil
		}
	}
	return refused(s.Lang.Of(by.Conversation.Chat))(a, err)
}

// list returns the page of a directory. An empty dir means the list of roots, which are the directories that users may
// read.
func (s *Screen) list(ctx context.Context, by orchestrator.Press, dir string) (tgapi.Answer, error) {
	at, err := s.Files.OfChat(ctx, by.Conversation, dir)
	if err != nil {
		return tgapi.Answer{}, err
	}
	v := view{conversation: by.Conversation, dir: dir, roots: at.Roots}
	if dir == "" {
		for _, root := range at.Roots {
			v.entries = append(v.entries, orchestrator.FileEntry{Name: root, Dir: true})
		}
	} else if v.entries, err = s.Files.List(ctx, at, dir); err != nil {
		return tgapi.Answer{}, err
	}
	return tgapi.Answer{Edit: s.show(v)}, nil
}

// listAbove returns the page of the nearest visible directory above a view. The working directory of the chat can be
// below a hidden directory, such as a worktree in .worktrees.
func (s *Screen) listAbove(ctx context.Context, by orchestrator.Press, v view) (tgapi.Answer, error) {
	for {
		v.dir = v.above()
		a, err := s.list(ctx, by, v.dir)
		why := (*orchestrator.FileError)(nil)
		if v.dir == "" || !errors.As(err, &why) || why.Why != orchestrator.FileHidden {
			return a, err
		}
	}
}

// show stores a view in memory and returns its page.
func (s *Screen) show(v view) tgapi.Page {
	say := s.Lang.Of(v.conversation.Chat)
	nonce := rand.Text()[:12]
	s.mu.Lock()
	for other := range s.views {
		if len(s.views) < maxViews {
			break
		}
		delete(s.views, other)
	}
	s.views[nonce] = v
	s.mu.Unlock()
	data := func(op string, arg int) string {
		data, _ := tgapi.ButtonData(Action, nonce+":"+op+strconv.Itoa(arg))
		return data
	}
	page := tgapi.Page{Text: say.Text("files.roots")}
	switch {
	case v.title != "":
		page.Text = v.title
	case v.dir != "":
		page.Text = say.Text("files.directory-of", render.Cut(v.dir, 500))
		if len(v.entries) == 0 {
			page.Text += "\n" + say.Text("files.nothing")
		}
		if len(v.entries) > manyEntries {
			page.Text += "\n" + say.Text("files.many")
		}
	}
	from, to, pager := tgapi.Paged(say, v.page, len(v.entries), func(p int) string { return data(opPage, p) })
	for i := from; i < to; i++ {
		page.Keyboard = append(page.Keyboard, []tgapi.Button{
			{Text: s.label(say, v.entries[i]), Data: data(opEntry, i)},
		})
	}
	page.Keyboard = append(page.Keyboard, pager...)
	last := []tgapi.Button{{Text: say.Text("common.close"), Data: data(opClose, 0)}}
	if v.dir != "" {
		last = append([]tgapi.Button{{Text: say.Text("files.up"), Data: data(opUp, 0)}}, last...)
	}
	page.Keyboard = append(page.Keyboard, last)
	return page
}

// label returns the text on the button of an entry.
func (s *Screen) label(p lang.Printer, e orchestrator.FileEntry) string {
	name := render.Cut(render.OneLine(e.Name), 40)
	if e.Dir {
		return "📁 " + name
	}
	return "📄 " + name + " · " + p.Size(e.Size)
}

// Press handles a button of this package. data is the button's data without the action.
func (s *Screen) Press(ctx context.Context, by orchestrator.Press, data string) (tgapi.Answer, error) {
	nonce, what, _ := strings.Cut(data, ":")
	p := s.Lang.Of(by.Conversation.Chat)
	s.mu.Lock()
	v, known := s.views[nonce]
	s.mu.Unlock()
	if !known || v.conversation != by.Conversation || len(what) < 2 {
		return tgapi.Answer{Text: p.Text("files.stale")}, nil
	}
	i, ok := tgapi.ButtonNumber(what[1:])
	switch op := what[:1]; {
	case op == opEntry && ok && i < len(v.entries) && !v.entries[i].Dir:
		return refused(p)(s.get(ctx, by, filepath.Join(v.dir, v.entries[i].Name)))
	case op == opEntry && ok && i < len(v.entries):
		return s.moved(p, nonce)(s.list(ctx, by, filepath.Join(v.dir, v.entries[i].Name)))
	case op == opPage && ok && i < tgapi.Pages(len(v.entries)):
		v.page = i
		return s.moved(p, nonce)(tgapi.Answer{Edit: s.show(v)}, nil)
	case op == opUp:
		return s.moved(p, nonce)(s.listAbove(ctx, by, v))
	case op == opClose:
		return s.moved(p, nonce)(tgapi.Answer{Edit: tgapi.Page{Text: p.Text("files.closed")}}, nil)
	}
	return tgapi.Answer{Text: p.Text("files.stale")}, nil
}

// moved returns a function that removes a view from memory when its message shows another page.
func (s *Screen) moved(p lang.Printer, nonce string) func(tgapi.Answer, error) (tgapi.Answer, error) {
	return func(a tgapi.Answer, err error) (tgapi.Answer, error) {
		if err == nil {
			s.mu.Lock()
			delete(s.views, nonce)
			s.mu.Unlock()
		}
		return refused(p)(a, err)
	}
}

// above returns the parent directory of a view. It returns "" if the directory is a root, because the list of roots is
// above it.
func (v view) above() string {
	for _, root := range v.roots {
		if rel, err := filepath.Rel(root, v.dir); err == nil && filepath.IsLocal(rel) && rel != "." {
			return filepath.Dir(v.dir)
		}
	}
	return ""
}
