package telegram

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptrace"
)

// Client returns an HTTP client that sends all requests to the server, without using the network. Tests with
// testing/synctest need this client, because synctest does not count a goroutine that waits for a socket as blocked.
//
// The client behaves as if it had a network connection. If the server drops a call, the client returns
// io.ErrUnexpectedEOF. A cancelled context ends the call. The client calls GotConn and WroteRequest of an
// httptrace.ClientTrace.
func (s *Server) Client() *http.Client { return &http.Client{Transport: wire{s}} }

type wire struct{ srv *Server }

// RoundTrip runs the handler in a goroutine, for which Server.Close waits. If the client disconnects, the handler
// continues, as in the real server.
func (t wire) RoundTrip(r *http.Request) (*http.Response, error) {
	body := io.NopCloser(http.NoBody)
	if r.Body != nil {
		data, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, err
		}
		body = io.NopCloser(bytes.NewReader(data))
	}
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		if trace.GotConn != nil {
			trace.GotConn(httptrace.GotConnInfo{})
		}
		if trace.WroteRequest != nil {
			trace.WroteRequest(httptrace.WroteRequestInfo{})
		}
	}
	in := r.Clone(r.Context())
	in.Body, in.RequestURI, in.RemoteAddr = body, r.URL.RequestURI(), "in-process"
	done := make(chan *recorded, 1)
	if !t.srv.enter() {
		return nil, io.ErrUnexpectedEOF
	}
	go func() {
		defer t.srv.inflight.Done()
		done <- record(t.srv, in)
	}()
	select {
	case answer := <-done:
		if answer == nil {
			return nil, io.ErrUnexpectedEOF
		}
		return answer.response(r), nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// recorded is an HTTP response in memory.
type recorded struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// record runs a handler and returns its response. It returns nil if the handler dropped the connection.
func record(h http.Handler, r *http.Request) (answer *recorded) {
	answer = &recorded{header: http.Header{}, status: http.StatusOK}
	defer func() {
		switch err := recover(); err {
		case nil:
		case http.ErrAbortHandler:
			answer = nil
		default:
			panic(err)
		}
	}()
	h.ServeHTTP(answer, r)
	return answer
}

func (a *recorded) Header() http.Header         { return a.header }
func (a *recorded) WriteHeader(status int)      { a.status = status }
func (a *recorded) Write(p []byte) (int, error) { return a.body.Write(p) }

func (a *recorded) response(r *http.Request) *http.Response {
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: io.NopCloser(&a.body), ContentLength: int64(a.body.Len()), Request: r,
	}
}
