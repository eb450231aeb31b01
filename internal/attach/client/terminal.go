package client

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"

	"ductor/internal/attach/screen"
	"ductor/internal/attach/wire"
)

// session is a screen and its connection to ductor.
type session struct {
	screen *screen.Screen
	link   *connection // nil while not connected
}

func newSession(o Options) *session { return &session{screen: screen.New(o.Conversation, rand.Text)} }

func (s *session) handleEvent(e event) {
	switch {
	case e.up != nil:
		s.link = e.up
		s.send(s.screen.Connected())
	case e.lost:
		s.link, s.screen.Link = nil, "reconnecting"
	}
	for _, m := range e.messages {
		s.send(s.screen.Apply(m))
	}
}

// send sends requests. If it fails, the screen sends the requests again after a reconnect.
func (s *session) send(requests []wire.Request) {
	if s.link != nil && len(requests) > 0 && s.link.send(requests...) != nil {
		_ = s.link.Close() // the reading goroutine then gets an error and reconnects
		s.link = nil
	}
}

// model shows a session with bubbletea.
type model struct {
	*session
	look screen.Look
}

// Init implements tea.Model.
func (m model) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.look.Width, m.look.Height = msg.Width, msg.Height
	case tea.PasteMsg:
		m.screen.Paste(msg.Content)
	case tea.KeyPressMsg:
		requests, leave := m.screen.Key(msg.Keystroke(), msg.Text)
		m.send(requests)
		if leave {
			return m, tea.Quit
		}
	case event:
		m.handleEvent(msg)
	}
	return m, nil
}

// View implements tea.Model.
func (m model) View() tea.View {
	shown := m.screen.View(m.look)
	v := tea.NewView(strings.Join(shown.Rows, "\n"))
	v.AltScreen = true
	if shown.Y >= 0 {
		v.Cursor = tea.NewCursor(shown.X, shown.Y)
	}
	return v
}

// fillTerminal shows a conversation in the whole terminal until the user leaves, ctx ends, or ductor refuses the
// connection.
func fillTerminal(ctx context.Context, o Options) error {
	following, leave := context.WithCancel(ctx)
	defer leave()
	// End the program with Quit and not through its context. Only Quit waits for the goroutine that reads the terminal.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	look := screen.Look{ASCII: o.ascii(), Plain: o.Getenv("NO_COLOR") != ""}
	p := tea.NewProgram(model{newSession(o), look}, tea.WithContext(life),
		tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithoutSignalHandler())
	up, followed := make(chan struct{}), make(chan error, 1)
	connected := sync.OnceFunc(func() { close(up) })
	go func() {
		followed <- follow(following, o.Dir, func(e event) {
			connected()
			p.Send(e)
		})
		p.Quit()
	}()
	select {
	case err := <-followed: // no connection was possible, so do not switch to the full screen
		return err
	case <-up:
	}
	_, err := p.Run()
	leave()
	return errors.Join(err, <-followed)
}
