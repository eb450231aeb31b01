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

// NewTransport returns the HTTP transport for Telegram. proxy is a URL with the scheme http, https, socks5 or socks5h.
// If it is empty, the environment variables for proxies apply. The transport limits the time for connecting, but not
// the time for a response, because Telegram holds long polls.
//
// The transport uses HTTP/1.1 only. With HTTP/2, all requests would share one connection. If this connection broke
// unnoticed, for example because the laptop slept, all requests would hang.
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
		// This time is shorter than the server's timeout for idle connections. With a longer time, ductor could send a
		// request while the server closes the connection. It would then be unknown whether the request had an effect.
		IdleConnTimeout:    25 * time.Second,
		DisableCompression: true, // responses are small
	}, nil
}

// trace observes one request, to determine whether the request may have reached Telegram.
type trace struct {
	tried     bool
	connected atomic.Bool
	broken    atomic.Bool // true if the request was not written completely
	fault     Fault       // set if the response reports an error
	message   int         // ID of the message in the response
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

// left reports whether the complete request may have reached the server.
func (t *trace) left() bool { return t.connected.Load() && !t.broken.Load() }

// wire is the HTTP client for go-telegram/bot. It stores each response in the trace, because the library's errors
// contain only text. It removes the URL from errors, because the URL contains the bot token.
type wire struct{ client *http.Client }

func newWire(transport http.RoundTripper) wire {
	return wire{&http.Client{
		Transport: transport,
		// Do not follow redirects: the request would send the token to another server, and the error would contain the
		// token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// answerLimit is the maximum size of a response in bytes. The response to a sent message contains the whole text of the
// message.
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

// read stores the content of a response in t, and returns the body that the library parses. If the request succeeded,
// the returned body contains no message, because ductor needs only the ID of the message, which is then in t.
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

// sentID returns the ID of the message in a response, if the response has Telegram's usual layout. It does not parse
// the rest of the response, which contains the whole text of the message.
func sentID(body []byte) (id int, ok bool) {
	rest, ok := bytes.CutPrefix(body, []byte(`{"ok":true,"result":{"message_id":`))
	digits, _, more := bytes.Cut(rest, []byte(","))
	if !ok || !more || !bytes.HasSuffix(rest, []byte("}}")) {
		return 0, false
	}
	id, err := strconv.Atoi(string(digits))
	return id, err == nil
}

// sentMessage is the ID of the message in a response, or of the first message of an album. If the response describes a
// new topic, it is the ID of the topic. For all other responses, it is 0.
type sentMessage int

// UnmarshalJSON implements json.Unmarshaler.
func (m *sentMessage) UnmarshalJSON(raw []byte) error {
	if list := []json.RawMessage(nil); len(raw) > 0 && raw[0] == '[' && json.Unmarshal(raw, &list) == nil &&
		len(list) > 0 {
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
