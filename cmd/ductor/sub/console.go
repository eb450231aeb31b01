package sub

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"ductor/internal/secrets"
)

// errStopped is the error if the user interrupts the program while it waits for an answer.
var errStopped = errors.New("stopped")

// console asks questions in a terminal. If the input is not a terminal, it reads each answer from a line.
type console struct {
	in    *os.File // if nil, Ask returns the preset answer
	lines *bufio.Reader
	out   io.Writer
}

// newConsole returns a console that reads from in. If in is nil, each question gets its preset answer.
func newConsole(in *os.File, out io.Writer) *console {
	c := &console{in: in, out: out}
	if in != nil {
		c.lines = bufio.NewReader(in)
	}
	return c
}

// Say writes a line.
func (c *console) Say(format string, args ...any) { fmt.Fprintf(c.out, format+"\n", args...) }

// Ask implements setup.Console. An answer is one line.
func (c *console) Ask(ctx context.Context, question, preset string) (string, error) {
	if c.in == nil {
		return preset, nil
	}
	fmt.Fprintf(c.out, "%s [%s]: ", question, preset)
	line, err := c.read(ctx, func() (string, error) { return c.lines.ReadString('\n') })
	if line = strings.TrimSpace(line); line == "" {
		line = preset
	}
	return line, err
}

// Secret asks for a text that the terminal does not show.
func (c *console) Secret(ctx context.Context, question string) (secrets.Value, error) {
	if c.in == nil {
		return "", nil
	}
	fmt.Fprintf(c.out, "%s: ", question)
	fd := int(c.in.Fd())
	if !term.IsTerminal(fd) {
		line, err := c.read(ctx, func() (string, error) { return c.lines.ReadString('\n') })
		return secrets.Value(line), err
	}
	before, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("read from the terminal: %w", err)
	}
	typed, err := c.read(ctx, func() (string, error) {
		typed, err := term.ReadPassword(fd)
		return string(typed), err
	})
	fmt.Fprintln(c.out)
	return secrets.Value(typed), errors.Join(err, term.Restore(fd, before))
}

// read calls f, which reads from the terminal, and returns the result of f. A read from a terminal cannot be
// interrupted. So if ctx is done first, read returns an error, and f continues in the background.
func (c *console) read(ctx context.Context, f func() (string, error)) (string, error) {
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() { text, err := f(); got <- answer{text, err} }()
	select {
	case a := <-got:
		if a.err == io.EOF && a.text != "" {
			a.err = nil
		}
		if a.err == io.EOF {
			a.err = errors.New("the input has ended: run this in a terminal, or see --help for flags that replace " +
				"the questions")
		} else if a.err != nil {
			a.err = fmt.Errorf("read an answer: %w", a.err)
		}
		return a.text, a.err
	case <-ctx.Done():
		fmt.Fprintln(c.out) // end the line of the open question
		return "", errStopped
	}
}
