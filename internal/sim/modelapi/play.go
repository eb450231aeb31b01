package modelapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"ductor/internal/sim/script"
)

// wire writes a response in the format of one API.
type wire interface {
	text(chunk string) error
	think(chunk string) error
	shell(st script.Tool) error
	write(path, body string) error
	use(tool string, input map[string]any) error // calls any other tool, such as a tool of an MCP server
	usage(script.Usage)
	fail(script.APIError) error
	// finish ends the response. An empty reason means a normal end.
	finish(reason script.EndReason) error
	began() bool // reports whether a part of the response was sent
}

// errCut makes the server break the connection.
var errCut = errors.New("connection cut")

// play sends the response that the script defines for this request. It returns errCut if the server must break the
// connection.
func (s *Server) play(ctx context.Context, c conversation, w wire) error {
	if e := s.failing(); e != nil {
		return w.fail(*e)
	}
	steps := c.steps()
	for _, st := range steps { // set the usage first, because some APIs send it before the text
		if u, ok := st.(script.Usage); ok {
			w.usage(u)
		}
	}
	var reason script.EndReason
	for i, st := range steps {
		var err error
		switch st := st.(type) {
		case script.Text:
			err = stream(ctx, st.Chunks, st.Delay, w.text)
		case script.Think:
			err = stream(ctx, st.Chunks, st.Delay, w.think)
		case script.History:
			err = w.text(c.history())
		case script.Tool:
			err = w.shell(st)
		case script.Write:
			err = w.write(st.Path, st.Body)
		case script.Call:
			err = call(c, st, w)
		case script.LongLine:
			err = w.text(strings.Repeat("x", st.Bytes))
		case script.Sleep:
			err = pause(ctx, st.For)
		case script.Hang:
			<-ctx.Done()
			err = ctx.Err()
		case script.RetryText:
			err = s.retryText(ctx, c, i, st, steps[i+1:], w)
		case script.Drop:
			if !s.reachedLimit(c.key(i), st.Times) {
				err = drop(c, w)
			}
		case script.End:
			if !s.reachedLimit(c.key(i), st.Times) {
				reason = st.Reason
			}
		case script.Crash:
			err = errCut
		case script.APIError:
			if !s.reachedLimit(c.key(i), st.Times) {
				return w.fail(st)
			}
		}
		if err != nil {
			return err
		}
	}
	if reason == script.EndUnsaid && c.stream {
		return nil
	}
	return w.finish(reason)
}

// call calls a tool of an MCP server. The CLI adds a prefix to the name of the tool.
func call(c conversation, st script.Call, w wire) error {
	var input map[string]any
	if err := json.Unmarshal([]byte(st.Args), &input); err != nil {
		return w.text(fmt.Sprintf("script: the arguments of %s are no object: %v", st.Tool, err))
	}
	for _, name := range c.tools {
		if name == st.Tool || strings.HasSuffix(name, "_"+st.Tool) || strings.HasSuffix(name, "-"+st.Tool) {
			return w.use(name, input)
		}
	}
	if c.offered("ToolSearch") != "" { // Claude's tool search finds tools that the request does not list
		return w.use(st.Tool, input)
	}
	if s, ok := w.(interface{ search(query string) error }); ok && c.offered("tool_search") != "" &&
		!strings.Contains(strings.Join(c.searched, " "), st.Tool) {
		return s.search(st.Tool)
	}
	return w.text("script: the request offers no tool " + st.Tool)
}

// drop sends some text, and then breaks the connection if the response is a stream. After a broken stream, agents
// repeat the request without a stream. This repeated request must succeed, so drop does not break its connection.
func drop(c conversation, w wire) error {
	if !w.began() || !c.stream {
		if err := stream(context.Background(), script.Generated(3, 0), 0, w.text); err != nil {
			return err
		}
	}
	if !c.stream {
		return nil
	}
	return errCut
}

// retryText sends text and breaks the connection. The agent then repeats the request. In response to the repeated
// request, the server performs the remaining steps of the script. If no remaining step sends text, retryText sends its
// text again.
func (s *Server) retryText(ctx context.Context, c conversation, i int, st script.RetryText, rest []script.Step,
	w wire) error {
	if c.stream && !s.reachedLimit(c.key(i), 1) {
		if err := stream(ctx, st.Chunks, st.Delay, w.text); err != nil {
			return err
		}
		return errCut
	}
	for _, r := range rest {
		if _, ok := r.(script.Text); ok {
			return nil
		}
	}
	return stream(ctx, st.Chunks, 0, w.text)
}

func stream(ctx context.Context, chunks []string, delay time.Duration, send func(string) error) error {
	for i, chunk := range chunks {
		if i > 0 {
			if err := pause(ctx, delay); err != nil {
				return err
			}
		}
		if err := send(chunk); err != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
