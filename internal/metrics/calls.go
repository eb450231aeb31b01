package metrics

import (
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Calls counts the calls to Telegram.
type Calls struct {
	total *prometheus.CounterVec

	mu      sync.Mutex
	methods map[string]bool
}

func NewCalls() *Calls {
	return &Calls{methods: map[string]bool{}, total: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ductor_telegram_calls_total", Help: "Calls to Telegram, by method and what became of them.",
	}, []string{"method", "result"})}
}

// Transport returns a transport that counts the requests and passes them to next.
func (c *Calls) Transport(next http.RoundTripper) http.RoundTripper { return &transport{next, c} }

type transport struct {
	http.RoundTripper
	calls *Calls
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	t.calls.total.WithLabelValues(t.calls.method(r.URL.Path), result(resp, err)).Inc()
	return resp, err
}

// CloseIdleConnections closes the idle connections of the underlying transport.
func (t *transport) CloseIdleConnections() {
	if below, ok := t.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		below.CloseIdleConnections()
	}
}

// maxMethods limits the number of values of the label "method", to protect the metrics from unexpected paths.
const maxMethods = 60

// method returns the last element of a path, which is the name of a Bot API method. It never returns the bot token,
// which is in another element.
func (c *Calls) method(path string) string {
	if strings.HasPrefix(path, "/file/") {
		return "file"
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz") != "" || len(name) > 40 ||
		!c.methods[name] && len(c.methods) >= maxMethods {
		return "other"
	}
	c.methods[name] = true
	return name
}

func result(resp *http.Response, err error) string {
	switch {
	case err != nil:
		return "unreachable"
	case resp.StatusCode == http.StatusOK:
		return "ok"
	case resp.StatusCode == http.StatusTooManyRequests:
		return "rate_limited"
	case resp.StatusCode >= 500:
		return "server_error"
	}
	return "refused"
}
