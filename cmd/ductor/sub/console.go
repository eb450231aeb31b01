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

// errStopped says that the user ended the program instead of answering.
var errStopped = errors.New("stopped")

// console asks the user at a terminal, or reads answers a line each.
type console struct {
	in    *os.File // nil: nothing is asked, and every preset counts
	lines *bufio.Reader
	out   io.Writer
}

// newConsole is a console of in; with a nil in it asks nothing.
func newConsole(in *os.File, out io.Writer) *console {
	c := &console{in: in, out: out}
	if in != nil {
		c.lines = bufio.NewReader(in)
	}
	return c
}

// Say writes a line.
func (c *console) Say(format string, args ...any) { fmt.Fprintf(c.out, format+"\n", args...) }

// Ask gives the line that answers a question.
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

// Secret gives what the user types without showing it.
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

// read is what f reads. Where ctx ends first f goes on until the program ends: no read of a terminal can be ended.
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
			a.err = errors.New("there is no one to answer: run this in a terminal, or see --help for how to do without questions")
		} else if a.err != nil {
			a.err = fmt.Errorf("read an answer: %w", a.err)
		}
		return a.text, a.err
	case <-ctx.Done():
		fmt.Fprintln(c.out) // the question has no answer
		return "", errStopped
	}
}
