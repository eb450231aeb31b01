package tgapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"
)

// NewTransport makes the HTTP transport for Telegram. proxy is an http, https or socks5 URL; empty means
// what the environment says. It has timeouts for connecting but none for answers, since long polls wait.
//
// It speaks HTTP/1.1 only: with HTTP/2 every call shares one connection, and one that died silently (a
// laptop that slept, a changed network) holds them all up until its timeout.
func NewTransport(proxy string) (*http.Transport, error) {
	from := http.ProxyFromEnvironment
	if proxy != "" {
		u, err := url.Parse(proxy)
		if err != nil || u.Host == "" {
			return nil, errors.New("the proxy is not a URL such as socks5://host:1080")
		}
		switch u.Scheme {
		case "http", "https", "socks5", "socks5h":
		default:
			return nil, fmt.Errorf("a proxy of scheme %q is not supported: use http, https or socks5", u.Scheme)
		}
		from = http.ProxyURL(u)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	dial := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 20 * time.Second}
	return &http.Transport{
		Proxy: from, DialContext: dial.DialContext, Protocols: protocols,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConns:        64, MaxIdleConnsPerHost: 64,
		// Shorter than the server's, so that a call seldom meets a connection that is being closed: then
		// it would be unknown whether the call went through.
		IdleConnTimeout:    25 * time.Second,
		DisableCompression: true, // answers are small
	}, nil
}

// trace watches one call on its way, to know afterwards whether it can have reached Telegram.
type trace struct {
	tried     bool
	connected atomic.Bool
	broken    atomic.Bool // the request could not be written whole
	fault     Fault       // of an answer that was not ok
	message   int         // the id of the message in an answer that was
}

type traceKey struct{}

func withTrace(ctx context.Context) (context.Context, *trace) {
	t := &trace{}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { t.connected.Store(true) },
		WroteRequest: func(i httptrace.WroteRequestInfo) { t.broken.Store(i.Err != nil) },
	})
	return context.WithValue(ctx, traceKey{}, t), t
}

// left says whether the whole request may have reached the other side.
func (t *trace) left() bool { return t.connected.Load() && !t.broken.Load() }

// wire is the HTTP client handed to go-telegram/bot. It notes what answers say before the library turns
// them into text, and takes the URL, which holds the token, out of errors.
type wire struct{ client *http.Client }

func newWire(transport http.RoundTripper) wire {
	return wire{&http.Client{
		Transport: transport,
		// A redirect would carry the token elsewhere, and its error would quote it.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// answerLimit bounds an answer that is read; a message comes back with its text and entities.
const answerLimit = 4 << 20

// Do implements the client interface of go-telegram/bot.
func (w wire) Do(req *http.Request) (*http.Response, error) {
	t, _ := req.Context().Value(traceKey{}).(*trace)
	if t != nil {
		t.tried = true
	}
	resp, err := w.client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return nil, err
	}
	if t == nil {
		return resp, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	resp.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(t.read(resp.StatusCode, body)))
	return resp, nil
}

// read notes what an answer says, and returns what the library is to see of it. Of an answer that is ok
// that is nothing: to read a message the library learns every type that one can hold, and all we need of
// it is the id.
func (t *trace) read(status int, body []byte) []byte {
	if id, ok := sentID(body); ok && status == http.StatusOK {
		t.message = id
		return []byte(nothingToRead)
	}
	var r struct {
		reply
		Result sentMessage `json:"result"`
	}
	switch bad := json.Unmarshal(body, &r); {
	case bad != nil && status == http.StatusOK:
		t.fault = Fault{Kind: UnknownFault, Description: "an answer that is not JSON"}
	case bad != nil:
		t.fault = classifyPage(status)
	case !r.OK:
		t.fault = classifyReply(status, r.reply)
	default:
		t.message = int(r.Result)
		return []byte(nothingToRead)
	}
	return body
}

const nothingToRead = `{"ok":true,"result":null}`

// sentID is the id in an answer with a message as Telegram writes it, which is not read further: there is one
// for every edit, as long as what was edited.
func sentID(body []byte) (id int, ok bool) {
	rest, ok := bytes.CutPrefix(body, []byte(`{"ok":true,"result":{"message_id":`))
	digits, _, more := bytes.Cut(rest, []byte(","))
	if !ok || !more || !bytes.HasSuffix(rest, []byte("}}")) {
		return 0, false
	}
	id, err := strconv.Atoi(string(digits))
	return id, err == nil
}

// sentMessage is the id of the message in an answer, or of the first of an album, or of the one that opened the topic in it; 0 where the
// answer is something else.
type sentMessage int

// UnmarshalJSON implements json.Unmarshaler.
func (m *sentMessage) UnmarshalJSON(raw []byte) error {
	if list := []json.RawMessage(nil); len(raw) > 0 && raw[0] == '[' && json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		raw = list[0]
	}
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	var sent struct {
		ID    int `json:"message_id"`
		Topic int `json:"message_thread_id"`
	}
	if err := json.Unmarshal(raw, &sent); err != nil {
		return fmt.Errorf("read the message that was sent: %w", err)
	}
	*m = sentMessage(cmp.Or(sent.ID, sent.Topic))
	return nil
}
