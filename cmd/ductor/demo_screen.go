package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"ductor/internal/sim/telegram"
)

// screen shows a chat on a terminal. What the user types stays on the last line while the messages above
// it grow: the newest ones are drawn over in place, older ones scroll away as they are.
type screen struct {
	chat *telegram.Chat
	in   *os.File
	line *term.Terminal // the line editor; what is written to it appears above the line

	width, height int
	drawn         map[telegram.MessageID]string
	order         []telegram.MessageID // what stands at the bottom, oldest first
}

func newScreen(chat *telegram.Chat, in, out *os.File) *screen {
	rw := struct {
		io.Reader
		io.Writer
	}{in, out}
	return &screen{chat: chat, in: in, line: term.NewTerminal(rw, "\x1b[1m> \x1b[0m"), drawn: map[telegram.MessageID]string{}}
}

// run draws and reads until the user ends it or ctx does.
func (s *screen) run(ctx context.Context, greeting string) error {
	state, err := term.MakeRaw(int(s.in.Fd()))
	if err != nil {
		return fmt.Errorf("take over the terminal: %w", err)
	}
	defer term.Restore(int(s.in.Fd()), state)
	if s.width, s.height, err = term.GetSize(int(s.in.Fd())); err != nil {
		s.width, s.height = 80, 24
	}
	if err := s.line.SetSize(s.width, s.height); err != nil {
		return fmt.Errorf("size the terminal: %w", err)
	}
	fmt.Fprint(s.line, greeting)
	ctx, stop := context.WithCancel(ctx)
	var drawing sync.WaitGroup
	drawing.Go(func() { s.follow(ctx) })
	defer drawing.Wait()
	defer stop()
	return s.read(ctx)
}

// read takes the user's lines. A terminal cannot be read with a deadline, so a goroutine of its own may
// outlive ctx in here; the process ends right after.
func (s *screen) read(ctx context.Context) error {
	lines, ended := make(chan string), make(chan error, 1)
	go func() {
		for {
			text, err := s.line.ReadLine()
			if err != nil {
				ended <- err
				return
			}
			// The chat shows what was sent; the typed line would stand there twice.
			fmt.Fprintf(s.line, "\x1b[%dA\x1b[J", s.rows("> "+text+"\n"))
			select {
			case lines <- text:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case text := <-lines:
			if err := act(ctx, s.chat, text); err != nil {
				fmt.Fprintf(s.line, "\x1b[2m%v\x1b[0m\n", err)
			}
		case err := <-ended:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// follow draws whatever changes.
func (s *screen) follow(ctx context.Context) {
	last := ""
	for {
		v, err := s.chat.Await(ctx, func(v telegram.View) bool { return fingerprint(v) != last })
		if err != nil {
			return
		}
		last = fingerprint(v)
		s.draw(v)
	}
}

// draw goes up to the oldest message that changed and writes from there on.
func (s *screen) draw(v telegram.View) {
	var shown []telegram.MessageID
	text := map[telegram.MessageID]string{}
	for _, m := range v.Messages {
		shown = append(shown, m.ID)
		text[m.ID] = s.block(m)
	}
	from := 0
	for from < len(shown) && from < len(s.order) && shown[from] == s.order[from] && text[shown[from]] == s.drawn[shown[from]] {
		from++
	}
	up := 0
	for _, id := range s.order[from:] {
		up += s.rows(s.drawn[id])
	}
	var b strings.Builder
	if up > s.height-2 {
		// What changed has scrolled away in part: it is written once more below.
		b.WriteString("\x1b[2m…\x1b[0m\n")
	} else if up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", up)
	}
	for _, id := range shown[from:] {
		b.WriteString(text[id])
	}
	s.order, s.drawn = shown, text
	fmt.Fprint(s.line, b.String())
}

// block is one message as it stands on the screen, with a line between it and the next.
func (s *screen) block(m telegram.Message) string {
	who := "\x1b[36mductor\x1b[0m "
	if m.From.ID == demoPerson {
		who = "\x1b[32myou\x1b[0m    "
	}
	return who + strings.ReplaceAll(wrap(m.ANSI(), s.width-indent), "\n", "\n"+strings.Repeat(" ", indent)) + "\n\n"
}

// indent is the width of the column that names the sender.
const indent = 7

// wrap breaks lines at spaces so that none is seen wider than width, where it can. Escape sequences continue
// over a break as they are.
func wrap(text string, width int) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		for visible(line) > width {
			at := breakAt(line, width)
			if at <= 0 {
				break
			}
			out = append(out, line[:at])
			line = line[at+1:]
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// breakAt is the last space of line that lets what is before it fit in width; 0 if there is none.
func breakAt(line string, width int) int {
	best := 0
	for i := range len(line) {
		if line[i] != ' ' {
			continue
		}
		if visible(line[:i]) > width {
			break
		}
		best = i
	}
	return best
}

// rows counts the lines that text takes on the screen.
func (s *screen) rows(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		n += 1 + max(visible(line)-1, 0)/max(s.width, 1)
	}
	return n
}

// visible counts the cells that a line takes: none for escape sequences, two for wide characters.
func visible(line string) int {
	n, escape := 0, false
	for _, r := range strings.TrimSuffix(line, "\n") {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
		case r >= 0x1100 && (r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 || r >= 0xf900 && r <= 0xfaff || r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 || r >= 0x1f300):
			n += 2
		case r != 0x200d && r != 0xfe0f:
			n++
		}
	}
	return n
}
