package codex

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"ductor/cli"
)

// probe is a short-lived `codex app-server`: JSON-RPC, one message a line, asked a few questions and ended.
type probe struct {
	process cli.Process
	lines   *bufio.Reader
	next    int
}

type rpcRequest struct {
	ID     int    `json:"id,omitempty"`
	Method string `json:"method"`
	Params any    `json:"params,omitempty"`
}

type rpcReply struct {
	ID     *int            `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// ask starts an app-server, shakes hands, lets f ask, and ends it. ctx bounds the whole.
func (p *Provider) ask(ctx context.Context, f func(*probe) error) error {
	process, err := p.opts.Launcher.Start(ctx, cli.Command{
		Path: p.opts.Path, Args: []string{"app-server"},
		Env: p.env(cli.Request{}), For: cli.Purpose{Agent: Agent},
	})
	if err != nil {
		return p.startFailure(err)
	}
	// Ending the process unblocks the reads below when ctx ends first.
	stop := context.AfterFunc(ctx, func() { _ = process.Stop(context.WithoutCancel(ctx), probeGrace) })
	defer stop()
	pr := &probe{process: process, lines: bufio.NewReader(process.Stdout())}
	err = pr.shakeHands()
	if err == nil {
		err = f(pr)
	}
	return errors.Join(err, context.Cause(ctx), process.Stop(context.WithoutCancel(ctx), probeGrace))
}

const probeGrace = 200 * time.Millisecond

func (pr *probe) shakeHands() error {
	hello := map[string]any{"clientInfo": map[string]string{"name": "ductor", "title": "ductor", "version": "1"}}
	if err := pr.call("initialize", hello, nil); err != nil {
		return err
	}
	return pr.send(rpcRequest{Method: "initialized"})
}

func (pr *probe) send(r rpcRequest) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := pr.process.Stdin().Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write to app-server: %w", err)
	}
	return nil
}

// call asks one question and reads on, past notifications, to its answer.
func (pr *probe) call(method string, params, result any) error {
	if params == nil {
		params = struct{}{}
	}
	pr.next++
	if err := pr.send(rpcRequest{ID: pr.next, Method: method, Params: params}); err != nil {
		return err
	}
	for {
		line, err := pr.lines.ReadBytes('\n')
		if err != nil {
			return pr.ended(method, err)
		}
		var reply rpcReply
		if json.Unmarshal(line, &reply) != nil || reply.ID == nil || *reply.ID != pr.next || reply.Method != "" {
			continue
		}
		if reply.Error != nil {
			return fmt.Errorf("app-server %s: %s", method, reply.Error.Message)
		}
		if result == nil {
			return nil
		}
		if err := json.Unmarshal(reply.Result, result); err != nil {
			return fmt.Errorf("read app-server's %s: %w", method, err)
		}
		return nil
	}
}

func (pr *probe) ended(method string, err error) error {
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("read app-server's %s: %w", method, err)
	}
	return fmt.Errorf("app-server ended before it answered %s: %s", method, oneLine(pr.process.StderrTail()))
}
