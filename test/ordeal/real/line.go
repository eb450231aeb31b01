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

// network is the state of the network between ductor and Telegram.
type network string

const (
	fair    network = "fair"   // no faults
	refuse  network = "refuse" // new connections are closed at once, and open ones are reset
	stall   network = "stall"  // connections stay open, but no data arrives
	slow    network = "slow"   // all data arrives late
	lossy   network = "lossy"  // random connections are reset
	chopped network = "half"   // responses are cut off in the middle
)

// line is a proxy between ductor and the simulated Telegram, on the loopback interface. It is safe for concurrent use.
type line struct {
	listener net.Listener
	to       string
	wait     sync.WaitGroup

	mu      sync.Mutex
	network network
	changed chan struct{} // closed and replaced when the field network changes
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
		listener: listener, to: strings.TrimPrefix(to, "http://"), network: fair, changed: make(chan struct{}),
		open: map[net.Conn]bool{}, random: rand.New(rand.NewPCG(2, seed)),
	}
	l.wait.Go(l.serve)
	return l, nil
}

func (l *line) url() string { return fmt.Sprintf("http://%s", l.listener.Addr()) }

// set changes the state of the network for all connections, including open ones.
func (l *line) set(n network) {
	l.mu.Lock()
	l.network = n
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	if n == refuse {
		l.cut()
	}
}

func (l *line) now() (network, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.network, l.changed
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
	if n, _ := l.now(); n == refuse {
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

// pass copies data until one side closes its connection, or until through breaks the connection.
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

// through sends a piece of data. Depending on l.network, through may wait first, or break the connection. It returns
// false if the connection is broken.
func (l *line) through(to io.Writer, piece []byte, answers bool) bool {
	const pause = 150 * time.Millisecond
	for {
		state, changed := l.now()
		switch state {
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

// mayHaveLost reports whether a connection broke while a response may have been on its way to ductor. The server
// answered at the time `answered`, and delayed the response by the duration `late`.
func (l *line) mayHaveLost(answered time.Time, late time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.cuts, func(at time.Time) bool {
		return !at.Before(answered) && at.Sub(answered) < late+transit
	})
}
