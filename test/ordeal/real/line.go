package real

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// weather is the state of the network between ductor and Telegram.
type weather string

const (
	fair    weather = "fair"
	refuse  weather = "refuse" // new connections are closed at once, and open ones are reset
	stall   weather = "stall"  // connections stay open, but no data arrives
	slow    weather = "slow"   // all data arrives late
	lossy   weather = "lossy"  // random connections are reset
	chopped weather = "half"   // responses are cut off in the middle
)

// line is a proxy between ductor and the simulated Telegram, on the loopback interface. It is safe for concurrent use.
type line struct {
	listener net.Listener
	to       string
	wait     sync.WaitGroup

	mu      sync.Mutex
	weather weather
	changed chan struct{} // closed and replaced when the weather changes
	open    map[net.Conn]bool
	random  *rand.Rand
	cuts    []time.Time // times at which the proxy broke connections
}

func newLine(to string, seed uint64) (*line, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &line{
		listener: listener, to: strings.TrimPrefix(to, "http://"), weather: fair, changed: make(chan struct{}),
		open: map[net.Conn]bool{}, random: rand.New(rand.NewPCG(2, seed)),
	}
	l.wait.Go(l.serve)
	return l, nil
}

func (l *line) url() string { return fmt.Sprintf("http://%s", l.listener.Addr()) }

// set changes the weather for all connections, including open ones.
func (l *line) set(w weather) {
	l.mu.Lock()
	l.weather = w
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	if w == refuse {
		l.cut()
	}
}

func (l *line) now() (weather, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.weather, l.changed
}

// cut resets all open connections.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cuts = append(l.cuts, time.Now())
	for c := range l.open {
		reset(c)
	}
}

// reset closes a connection with a TCP reset.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

func (l *line) close() {
	_ = l.listener.Close()
	l.set(refuse)
	l.wait.Wait()
}

func (l *line) serve() {
	for {
		conn, err := l.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		l.wait.Go(func() { l.relay(conn) })
	}
}

// track registers an open connection. done unregisters it.
func (l *line) track(c net.Conn) (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[c] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, c)
		_ = c.Close()
	}
}

func (l *line) relay(client net.Conn) {
	defer l.track(client)()
	if w, _ := l.now(); w == refuse {
		reset(client)
		return
	}
	server, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	defer l.track(server)()
	var both sync.WaitGroup
	both.Go(func() { l.pass(server, client, false); _ = server.(*net.TCPConn).CloseWrite() })
	both.Go(func() { l.pass(client, server, true); reset(client) })
	both.Wait()
}

// pass copies data until one side closes its connection, or until the simulated network breaks the connection
// (through).
func (l *line) pass(to io.Writer, from io.Reader, answers bool) {
	piece := make([]byte, 4<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 && !l.through(to, piece[:n], answers) {
			return
		}
		if err != nil {
			return
		}
	}
}

// through sends a piece of data. Depending on l.weather, the state of the simulated network, through may wait first, or
// break the connection. It returns false if the connection is broken.
func (l *line) through(to io.Writer, piece []byte, answers bool) bool {
	const pause = 150 * time.Millisecond
	for {
		w, changed := l.now()
		switch w {
		case stall:
			<-changed
			continue
		case slow:
			time.Sleep(pause)
		case lossy:
			if l.chance(10) {
				return false
			}
		case chopped:
			if answers && l.chance(4) {
				_, _ = to.Write(piece[:len(piece)/2])
				return false
			}
		case refuse:
			return false
		}
		_, err := to.Write(piece)
		return err == nil
	}
}

// chance decides at random whether to break a connection now. The probability is 1/n.
func (l *line) chance(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.random.IntN(n) > 0 {
		return false
	}
	l.cuts = append(l.cuts, time.Now())
	return true
}

// transit is the maximum time for a call or a response to arrive.
const transit = time.Second

// breaks returns the times at which the proxy broke connections.
func (l *line) breaks() []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.cuts)
}

// mayHaveLost reports whether a response may be lost because a connection broke soon after the server answered. late is
// the delay of the response.
func (l *line) mayHaveLost(answered time.Time, late time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.cuts, func(at time.Time) bool {
		return !at.Before(answered) && at.Sub(answered) < late+transit
	})
}
