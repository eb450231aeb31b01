package telegram

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// FaultKind is how a call fails.
type FaultKind string

// FaultKind values. If the name contains After, the call takes effect before it fails: for example, the chat shows the
// message, but the client does not know whether it was sent.
const (
	NoFault         FaultKind = ""               // the call succeeds, perhaps after a delay
	DropBefore      FaultKind = "drop before"    // the connection breaks before the call takes effect
	DropAfter       FaultKind = "drop after"     // the connection breaks after the call took effect
	BadGateway      FaultKind = "502"            // an HTML page with status 502, before the call takes effect
	BadGatewayAfter FaultKind = "502 after"      // an HTML page with status 502, after the call took effect
	ServerError     FaultKind = "500"            // an HTML page with status 500, before the call takes effect
	TooMany         FaultKind = "429"            // the error Too Many Requests, with RetryAfter
	BadJSON         FaultKind = "malformed JSON" // the call takes effect, but the JSON of the response is incomplete
	Hang            FaultKind = "hang"           // the call takes no effect and gets no response
)

// Always is a value for Fault.Times. The fault then affects all calls until Remove is called.
const Always = -1

// Fault makes calls fail, or makes them slow.
type Fault struct {
	Method string // method as in the Bot API; "file" for downloads; "" for all methods
	// When is a further condition for the calls that fail, or nil. It gets a Call that contains only the method, the
	// parameters, the chat and the time.
	When       func(Call) bool
	Times      int           // number of affected calls; 0 means 1
	Skip       int           // number of matching calls that succeed before the fault begins
	Delay      time.Duration // pause before the call takes effect
	Late       time.Duration // pause between the effect of the call and the response
	Kind       FaultKind
	RetryAfter int       // value of retry_after in seconds, for TooMany; at least 1
	Until      time.Time // if set, all calls before this time fail; for TooMany, retry_after is the remaining time

	removed chan struct{} // closed by Remove
}

// Injected is a fault that was added to a server.
type Injected struct {
	list  *faultList
	fault Fault
	hits  int
}

// Inject adds a fault. If several faults match a call, the first of them applies.
func (s *Server) Inject(f Fault) *Injected {
	if f.Times == 0 {
		f.Times = 1
	}
	f.removed = make(chan struct{})
	i := &Injected{list: &s.faults, fault: f}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.all = append(s.faults.all, i)
	return i
}

// Hits returns how many calls the fault has affected.
func (i *Injected) Hits() int {
	i.list.mu.Lock()
	defer i.list.mu.Unlock()
	return i.hits
}

// Remove removes the fault, and ends delays that it has caused.
func (i *Injected) Remove() {
	i.list.mu.Lock()
	defer i.list.mu.Unlock()
	if slices.Contains(i.list.all, i) {
		close(i.fault.removed)
	}
	i.list.all = slices.DeleteFunc(i.list.all, func(other *Injected) bool { return other == i })
}

type faultList struct {
	mu  sync.Mutex
	all []*Injected
}

// count returns the fault for a call, and counts the call as affected. If no fault matches, it returns the zero value.
func (l *faultList) count(c Call) Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range l.all {
		f := &i.fault
		if (f.Method != "" && !strings.EqualFold(f.Method, c.Method)) || (f.When != nil && !f.When(c)) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		if !f.affects(c.At, i.hits) {
			continue
		}
		i.hits++
		return f.withRetryAfter(c.At)
	}
	return Fault{}
}

// affects reports whether the fault affects the next matching call. hits is the number of calls that the fault has
// already affected.
func (f *Fault) affects(now time.Time, hits int) bool {
	if !f.Until.IsZero() {
		return now.Before(f.Until)
	}
	return f.Times == Always || hits < f.Times
}

// withRetryAfter returns the fault with the value that RetryAfter has at the time now.
func (f Fault) withRetryAfter(now time.Time) Fault {
	if !f.Until.IsZero() {
		f.RetryAfter = int(math.Ceil(f.Until.Sub(now).Seconds()))
	}
	return f
}

// before waits for the delay. It returns true if the connection must break before the call takes effect.
func (f Fault) before(client, server context.Context) (drop bool) {
	if f.Kind == Hang {
		select {
		case <-client.Done():
		case <-server.Done():
		}
		return true
	}
	if f.wait(f.Delay, client, server); f.Delay > 0 && server.Err() != nil {
		return true
	}
	return f.Kind == DropBefore
}

// wait waits for the duration d. It returns earlier if the fault is removed, the client disconnects, or the server
// ends. Even if the client disconnects, its call takes effect.
func (f Fault) wait(d time.Duration, client, server context.Context) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.removed:
	case <-client.Done():
	case <-server.Done():
	}
}

// page is an HTML page from a proxy in front of the Bot API.
type page struct {
	status     int
	kind, body string
	retryAfter int
}

// errorPage returns the error page for a call that takes no effect. It returns false if the fault has no error page.
func (f Fault) errorPage() (page, bool) {
	switch f.Kind {
	case BadGateway, ServerError:
		return f.html(), true
	case TooMany:
		seconds := max(1, f.RetryAfter)
		body := string(encodeAnswer(nil, tooManyRequests(seconds)))
		return page{http.StatusTooManyRequests, "application/json", body, seconds}, true
	}
	return page{}, false
}

func (f Fault) html() page {
	status := http.StatusBadGateway
	if f.Kind == ServerError {
		status = http.StatusInternalServerError
	}
	text := strconv.Itoa(status) + " " + http.StatusText(status)
	body := "<html>\r\n<head><title>" + text + "</title></head>\r\n<body>\r\n<center><h1>" + text +
		"</h1></center>\r\n<hr><center>nginx/1.18.0</center>\r\n</body>\r\n</html>\r\n"
	return page{status: status, kind: "text/html", body: body}
}

func (p page) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", p.kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(p.body)))
	w.WriteHeader(p.status)
	_, _ = w.Write([]byte(p.body)) // an error means that the client has disconnected
}

// spoilResponse writes a faulty response for a call that took effect. It returns false if the fault does not change the
// response.
func (f Fault) spoilResponse(w http.ResponseWriter, body []byte) (spoilt bool) {
	switch f.Kind {
	case DropAfter:
		panic(http.ErrAbortHandler)
	case BadGatewayAfter:
		f.html().write(w)
		return true
	case BadJSON:
		half := string(body[:len(body)*2/3])
		page{status: http.StatusOK, kind: "application/json", body: half}.write(w)
		return true
	}
	return false
}
