package runner

import (
	"errors"
	"io"
	"net"
	"testing"
)

func TestClients(t *testing.T) {
	all := clients{conns: map[*conn]bool{}}
	ours, theirs := net.Pipe()
	client := &conn{frames: frames{conn: theirs}}
	if all.contains(client) || !all.add(client) || !all.contains(client) || all.count() != 1 {
		t.Fatal("the client is not added")
	}
	go all.broadcast(reply{Run: "one"})
	var r reply
	if _, err := (&frames{conn: ours}).receive(&r); err != nil || r.Run != "one" {
		t.Errorf("the client received %+v, %v", r, err)
	}
	all.close()
	if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is open: %v", err)
	}
	if all.contains(client) || all.add(&conn{}) {
		t.Error("a leaving runner has clients")
	}
	all.remove(client) // as serve does
}
