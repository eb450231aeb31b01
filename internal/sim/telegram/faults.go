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

// FaultKind is the kind of failure of a call.
type FaultKind string

// Kinds of faults. With a kind named After, the call takes effect before it fails: the message exists, but the client
// cannot know that.
const (
	NoFault         FaultKind = ""               // only a delay, if any
	DropBefore      FaultKind = "drop before"    // no effect, then the connection breaks
	DropAfter       FaultKind = "drop after"     // takes effect, then the connection breaks
	BadGateway      FaultKind = "502"            // no effect, and an HTML page with status 502
	BadGatewayAfter FaultKind = "502 after"      // takes effect, then the same page
	ServerError     FaultKind = "500"            // no effect, and an HTML page with status 500
	TooMany         FaultKind = "429"            // Too Many Requests with RetryAfter
	BadJSON         FaultKind = "malformed JSON" // takes effect, and the response ends in the middle
	Hang            FaultKind = "hang"           // no response and no effect
)

// Always is a value of Fault.Times. The fault then lasts until Remove.
const Always = -1

// Fault makes calls fail or wait.
type Fault struct {
	Method     string          // in the spelling of the Bot API, "file" for downloads, or "" for all
	When       func(Call) bool // additional condition, or nil; its Call has the method, parameters, chat and time
	Times      int             // number of calls that it affects; 0 means 1
	Skip       int             // number of matching calls that pass before the first affected one
	Delay      time.Duration   // wait before the call has an effect
	Late       time.Duration   // wait between the effect and the response
	Kind       FaultKind
	RetryAfter int       // seconds, for TooMany; at least 1
	Until      time.Time // if set, the fault affects all calls until then, and TooMany returns the remaining time

	removed chan struct{} // closed by Remove
}

// Injected is an active fault.
type Injected struct {
	list  *faultList
	fault Fault
	hits  int
}

// Inject adds a fault. If several faults match a call, only the one that was added first affects it.
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

// Hits returns the number of affected calls.
func (i *Injected) Hits() int {
	i.list.mu.Lock()
	defer i.list.mu.Unlock()
	return i.hits
}

// Remove ends the fault and its current delays.
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

// take returns the fault of a call, or the zero Fault.
func (l *faultList) take(c Call) Fault {
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
		if !f.strikes(c.At, i.hits) {
			continue
		}
		i.hits++
		return f.at(c.At)
	}
	return Fault{}
}

// strikes reports whether the fault affects a call at a time, after a number of earlier hits.
func (f *Fault) strikes(now time.Time, hits int) bool {
	if !f.Until.IsZero() {
		return now.Before(f.Until)
	}
	return f.Times == Always || hits < f.Times
}

// at returns the fault for a call at a time.
func (f Fault) at(now time.Time) Fault {
	if !f.Until.IsZero() {
		f.RetryAfter = int(math.Ceil(f.Until.Sub(now).Seconds()))
	}
	return f
}

// before waits for the delay, and reports whether to drop the connection now.
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

// wait waits until d has passed, the fault is removed, the client disconnects, or the server ends. A request that has
// arrived takes effect even if its client disconnects.
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

// page is a response from a proxy in front of the Bot API.
type page struct {
	status     int
	kind, body string
	retryAfter int
}

// instead returns the response to a call that has no effect.
func (f Fault) instead() (page, bool) {
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
	_, _ = w.Write([]byte(p.body)) // fails only if the client is gone
}

// after changes the response of a call that took effect. It returns false if it left the response unchanged.
func (f Fault) after(w http.ResponseWriter, body []byte) (spoilt bool) {
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
