package servers

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ductor/cli"
	"ductor/lang"
)

// Limits of a server's answers.
const (
	maxTools = 128 // models accept no more tools, and each tool takes space in the context
	maxBytes = 8 << 20
)

// version is a protocol version that every agent supports.
const version = "2025-06-18"

// Problems without parameters.
func noStart(in lang.Printer) string     { return in.Text("servers.no-start") }
func ended(in lang.Printer) string       { return in.Text("servers.ended") }
func garbage(in lang.Printer) string     { return in.Text("servers.garbage") }
func unreachable(in lang.Printer) string { return in.Text("servers.unreachable") }

// connection is a connection to a server that is being checked.
type connection struct {
	transport sdk.Transport
	why       func() Problem // returns the reason why a check failed; not called after a timeout
	release   func()         // ends everything that the check has started
}

// Probe checks that a server answers in an environment, and does not have too many tools. The caller must call release,
// which ends everything that the check has started.
func (c *Checker) Probe(ctx context.Context, in cli.Sandbox, name string) (problem Problem, release func()) {
	server, problem := c.server(place{in, name})
	if problem != nil {
		return problem, func() {}
	}
	timeout := c.opts.Servers[name].Timeout
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := c.connect(ctx, in, server)
	tools := 0
	if err == nil {
		tools, err = conn.ask(ctx)
	}
	switch {
	case tools > maxTools:
		return func(in lang.Printer) string { return in.Text("servers.tools", tools, maxTools) }, conn.release
	case err == nil:
		return nil, conn.release
	}
	c.opts.Logger.Info("an MCP server cannot be used", "server", name, "sandbox", in, "err", err)
	if ctx.Err() != nil {
		return func(in lang.Printer) string { return in.Text("servers.silent", timeout.String()) }, conn.release
	}
	return conn.why(), conn.release
}

func (c *Checker) connect(ctx context.Context, in cli.Sandbox, server cli.ToolServer) (*connection, error) {
	if server.URL != "" {
		return connectHTTP(server), nil
	}
	conn := &connection{why: func() Problem { return noStart }, release: func() {}}
	at, err := c.opts.Place(in)
	if err != nil {
		return conn, err
	}
	p, err := at.Launcher.Start(ctx, cli.Command{Path: server.Path, Args: server.Args, Dir: at.Dir,
		Env: at.Env(server.Env), For: cli.Purpose{Agent: "mcp"}})
	if err != nil {
		return conn, err
	}
	out := &output{from: p.Stdout()}
	conn.transport = &sdk.IOTransport{Reader: io.NopCloser(io.LimitReader(out, maxBytes)), Writer: p.Stdin(),
		MaxLineLength: maxBytes}
	conn.release = func() { _ = p.Stop(context.WithoutCancel(ctx), 0) }
	conn.why = func() Problem {
		if !out.ended.Load() {
			return garbage
		}
		c.opts.Logger.Info("an MCP server ended", "server", server.Name, "stderr", p.StderrTail())
		return ended
	}
	return conn, nil
}

// output is the standard output of a server's program. It records the end of the output.
type output struct {
	from  io.Reader
	ended atomic.Bool
}

// Read implements io.Reader.
func (o *output) Read(p []byte) (int, error) {
	n, err := o.from.Read(p)
	if err != nil {
		o.ended.Store(true)
	}
	return n, err
}

// ask returns the number of tools that a server has. It stops counting after maxTools.
func (conn *connection) ask(ctx context.Context) (tools int, err error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "ductor", Version: "1"}, nil)
	session, err := client.Connect(ctx, conn.transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return 0, err
	}
	end := conn.release
	conn.release = func() {
		end()
		_ = session.Close() // the connection may be closed already
	}
	if caps := session.InitializeResult().Capabilities; caps == nil || caps.Tools == nil {
		return 0, nil
	}
	for params := (&sdk.ListToolsParams{}); ; {
		list, err := session.ListTools(ctx, params)
		if err != nil {
			return tools, err
		}
		tools += len(list.Tools)
		if tools > maxTools || list.NextCursor == "" {
			return tools, nil
		}
		params.Cursor = list.NextCursor
	}
}

// requests sends HTTP requests to a server. It adds the configured headers, and limits the size of responses.
type requests struct {
	headers map[string]string
	status  atomic.Int64 // status of the last response; 0 before the first
}

// RoundTrip implements http.RoundTripper.
func (r *requests) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	for name, value := range r.headers {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	r.status.Store(int64(resp.StatusCode))
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxBytes), resp.Body}
	return resp, nil
}

// connectHTTP returns a connection to a server that has a URL. It follows no redirects, because only this server may
// see the headers.
func connectHTTP(server cli.ToolServer) *connection {
	sent := &requests{headers: server.HeadersBy(server.Value)}
	client := &http.Client{Transport: sent, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	return &connection{
		transport: &sdk.StreamableClientTransport{Endpoint: server.URL, HTTPClient: client, MaxRetries: -1,
			DisableStandaloneSSE: true, MaxEventSize: maxBytes},
		release: func() {},
		why: func() Problem {
			switch code := sent.status.Load(); {
			case code == 0:
				return unreachable
			case code >= http.StatusMultipleChoices:
				return func(in lang.Printer) string { return in.Text("servers.http", code) }
			}
			return garbage
		},
	}
}
