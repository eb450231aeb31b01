package main

import (
	"io"
	"net"
	"sync"
	"testing"
)

// line is a line to a server that can be cut: what it carries breaks, and nobody answers until it is mended.
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

// cut breaks the line, and returns when nothing is carried any more.
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

// carry joins two ends until one of them is closed.
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
			_, _ = io.Copy(way[0], way[1]) // it ends when the line does
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

// hold notes two ends, and closes them if the line is cut.
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
