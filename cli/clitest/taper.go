package clitest

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"ductor/cli"
)

func (l taper) Start(ctx context.Context, cmd cli.Command) (cli.Process, error) {
	p, err := l.Launcher.Start(ctx, cmd)
	if err != nil {
		return nil, err
	}
	if cmd.For.Mode != "" { // the process serves a session, and not only a short query
		l.r.agent = p.PID()
	}
	return &tapedProcess{Process: p, r: l.r, number: l.r.started(cmd.Path)}, nil
}

func (p *tapedProcess) Stdin() io.WriteCloser { return tapedInput{p.Process.Stdin(), p} }
func (p *tapedProcess) Stdout() io.Reader     { return tapedOutput{p} }

type tapedInput struct {
	io.WriteCloser
	p *tapedProcess
}

func (in tapedInput) Write(b []byte) (int, error) {
	in.p.mu.Lock()
	in.p.heard = append(in.p.heard, b...)
	for {
		message, rest, ok := cutMessage(in.p.r.framing, in.p.heard)
		if !ok {
			break
		}
		name, ids := nameOf(message)
		in.p.r.add('>', in.p.number, name+" "+strings.Join(ids, " "))
		in.p.heard = rest
	}
	in.p.mu.Unlock()
	return in.WriteCloser.Write(b)
}

type tapedOutput struct{ p *tapedProcess }

func (out tapedOutput) Read(b []byte) (int, error) {
	n, err := out.p.Process.Stdout().Read(b)
	out.p.mu.Lock()
	defer out.p.mu.Unlock()
	out.p.said = append(out.p.said, b[:n]...)
	for {
		message, rest, ok := cutMessage(out.p.r.framing, out.p.said)
		if !ok {
			break
		}
		out.p.r.add('<', out.p.number, string(message))
		out.p.said = rest
	}
	if errors.Is(err, io.EOF) {
		out.p.settled.Do(func() {
			if len(out.p.said) > 0 {
				out.p.r.add('<', out.p.number, string(out.p.said))
			}
			code := 0
			select {
			case <-out.p.Done():
				code = out.p.Exit().Code
			default:
			}
			out.p.r.add('.', out.p.number, strconv.Itoa(code))
		})
	}
	return n, err
}
