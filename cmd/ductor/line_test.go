package main

import (
	"io"
	"net"
	"sync"
	"testing"
)

// line is a connection to a server that the test can interrupt: its streams break, and it accepts no others until it
// is restored.
type line struct {
	t        testing.TB
	addr, to string

	mu       sync.Mutex
	listener net.Listener // nil while it is cut
	conns    map[net.Conn]bool
	carrying sync.WaitGroup
}

func newLine(t testing.TB, to string) *line {
	t.Helper()
	l := &line{t: t, addr: "127.0.0.1:0", to: to, conns: map[net.Conn]bool{}}
	l.mend()
	l.addr = l.listener.Addr().String()
	t.Cleanup(l.cut)
	return l
}

func (l *line) mend() {
	l.t.Helper()
	listener, err := net.Listen("tcp", l.addr)
	if err != nil {
		l.t.Fatal(err)
	}
	l.mu.Lock()
	l.listener = listener
	l.mu.Unlock()
	l.carrying.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			l.carrying.Go(func() { l.carry(conn) })
		}
	})
}

// cut interrupts the line, and returns when no stream is left.
func (l *line) cut() {
	l.mu.Lock()
	if l.listener != nil {
		_ = l.listener.Close()
		l.listener = nil
	}
	for conn := range l.conns {
		_ = conn.Close()
	}
	l.mu.Unlock()
	l.carrying.Wait()
}

// carry joins two connections until one of them is closed.
func (l *line) carry(from net.Conn) {
	to, err := net.Dial("tcp", l.to)
	if err != nil {
		_ = from.Close()
		return
	}
	if !l.hold(from, to) {
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // ends with the line
			_ = from.Close()
			_ = to.Close()
		})
	}
	both.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, from)
	delete(l.conns, to)
}

// hold records connections, and closes them if the line is cut.
func (l *line) hold(ends ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, end := range ends {
		if l.listener == nil {
			_ = end.Close()
			continue
		}
		l.conns[end] = true
	}
	return l.listener != nil
}
