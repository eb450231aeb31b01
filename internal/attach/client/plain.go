package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"ductor/internal/attach/screen"
	"ductor/internal/attach/wire"
)

var errFailed = errors.New("a turn did not end well; its last line above says why")

// printLines prints a conversation as plain lines. It reads prompts from o.In. If o.Lines is set, each line is a
// prompt. If not, the whole input is one prompt. If the input contains prompts, printLines returns when their turns
// have ended. If it contains none, printLines prints until ctx ends or ductor refuses the connection.
func printLines(ctx context.Context, o Options) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	p := &linePrinter{session: newSession(o), printer: screen.NewPrinter(o.ascii()), out: o.Out}
	events, prompts, followed := make(chan event), make(chan string), make(chan error, 1)
	go func() {
		followed <- follow(ctx, o.Dir, func(e event) {
			select {
			case events <- e:
			case <-ctx.Done():
			}
		})
	}()
	go readPrompts(ctx, o.In, o.Lines, prompts) // if no input arrives, this goroutine runs until the process exits
	for !p.finished() {
		var err error
		select {
		case e := <-events:
			err = p.event(e)
		case text, more := <-prompts:
			if !more {
				p.ended, prompts = true, nil
				break
			}
			p.submit(text)
		case err := <-followed:
			return err
		}
		if err != nil {
			return err
		}
	}
	if p.failed {
		return errFailed
	}
	return nil
}

// readPrompts reads prompts until the end of the input. If perLine is true, each line is a prompt. Otherwise the whole
// input is one prompt.
func readPrompts(ctx context.Context, in io.Reader, perLine bool, prompts chan<- string) {
	defer close(prompts)
	pass := func(text string) {
		if strings.TrimSpace(text) != "" {
			select {
			case prompts <- text:
			case <-ctx.Done():
			}
		}
	}
	if !perLine {
		all, _ := io.ReadAll(io.LimitReader(in, wire.MaxPrompt+1)) // ductor refuses longer prompts anyway
		pass(string(all))
		return
	}
	for all := bufio.NewReader(in); ; {
		line, err := all.ReadString('\n')
		pass(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return
		}
	}
}

type linePrinter struct {
	*session
	printer *screen.Printer
	out     io.Writer
	own     []string // IDs of unfinished turns whose prompts came from the input
	asked   int      // number of prompts and commands read from the input so far
	ended   bool     // the input has ended
	failed  bool     // ductor rejected a prompt or command, or the turn of a prompt failed
}

func (p *linePrinter) submit(text string) {
	p.asked++
	requests := p.screen.Submit(text)
	for _, r := range requests {
		if r.Prompt != nil {
			p.own = append(p.own, wire.TurnOf(r.Prompt.ID))
		}
	}
	p.send(requests)
}

func (p *linePrinter) event(e event) error {
	p.handleEvent(e)
	for _, m := range e.messages {
		if m.Reply != nil && m.Reply.Error != "" {
			p.failed = true
			p.own = without(p.own, wire.TurnOf(m.Reply.ID))
		}
		if _, err := io.WriteString(p.out, p.printer.Apply(m)); err != nil {
			return fmt.Errorf("print the conversation: %w", err)
		}
	}
	return nil
}

// finished reports whether the input and the turns of all its prompts have ended.
func (p *linePrinter) finished() bool {
	for _, turn := range p.own {
		if state := p.printer.State(turn); state.Over() && state != "" {
			p.failed = p.failed || state != wire.StateDone && state != wire.StateSteered
			p.own = without(p.own, turn)
		}
	}
	return p.ended && p.asked > 0 && len(p.own) == 0 && p.screen.Pending() == 0
}

func without(all []string, one string) []string {
	var rest []string
	for _, s := range all {
		if s != one {
			rest = append(rest, s)
		}
	}
	return rest
}
