package supervisor

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// owner is a client that speaks frames itself, so that it can end in the middle of one.
func owner(t *testing.T, root *Root, id string) net.Conn {
	t.Helper()
	rec, err := root.record(id)
	if err != nil {
		t.Fatal(err)
	}
	l, _, err := root.connect(t.Context(), rec, hello{Role: roleOwn, Window: window})
	if err != nil {
		t.Fatal(err)
	}
	return l.conn
}

// inputFrame is what a client sends to write p.
func inputFrame(t *testing.T, seq int64, p []byte) []byte {
	t.Helper()
	var raw bytes.Buffer
	if err := (&frameWriter{w: &raw}).marked(kindInput, seq, p); err != nil {
		t.Fatal(err)
	}
	return raw.Bytes()
}

func TestInputIsCounted(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	run := start(t, root, sh(`cat`))
	if got := run.Info(); got.InputEnd != 0 || got.InputClosed {
		t.Errorf("%+v", got)
	}
	if _, err := io.WriteString(run.Stdin(), "hello\n"); err != nil {
		t.Fatal(err)
	}
	if info, err := run.Inspect(t.Context()); err != nil || info.InputEnd != 6 || info.InputClosed {
		t.Errorf("%+v, %v", info, err)
	}
	guest, err := root.Follow(t.Context(), run.ID(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(guest.Stdin(), "no\n"); err == nil {
		t.Error("a guest may write")
	}
	if err := guest.Stdin().Close(); err == nil {
		t.Error("a guest may end the input")
	}
	run.Detach()
	run = attach(t, root, run.ID(), 0)
	if got := run.Info(); got.InputEnd != 6 || got.InputClosed {
		t.Errorf("%+v", got)
	}
	if err := run.Stdin().Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(run.Stdin(), "more\n"); err == nil {
		t.Error("there is input after its end")
	}
	if info, err := run.Inspect(t.Context()); err != nil || info.InputEnd != 6 || !info.InputClosed {
		t.Errorf("%+v, %v", info, err)
	}
	if got := readAll(t, run.Stdout()); got != "hello\n" {
		t.Errorf("%q", got)
	}
}

// A client dies anywhere in a frame. Its successor is told exactly what reaches the agent: whole frames, and
// none of those that were still in the socket.
func TestInputOfTheDeadIsCountedInWholeFrames(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	run := start(t, root, sh(`exec cat`))
	run.Detach()
	eventually(t, "the run is known", func() bool { return exists(t, root.path(run.ID()), specFile) })
	frame := bytes.Repeat([]byte("0123456789abcde\n"), 64)
	var before int64
	for round := range 30 {
		conn := owner(t, root, run.ID())
		var raw []byte
		for seq := range rand.Int64N(5) {
			raw = append(raw, inputFrame(t, seq+1, frame)...)
		}
		cut := inputFrame(t, 9, frame)
		raw = append(raw, cut[:rand.IntN(len(cut))]...)
		if _, err := conn.Write(raw); err != nil {
			t.Fatal(err)
		}
		if round%2 == 0 {
			time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
		}
		again := attach(t, root, run.ID(), before) // while the other one still has the connection
		_ = conn.Close()
		end := again.Info().InputEnd
		if (end-before)%int64(len(frame)) != 0 || end < before {
			t.Fatalf("%d bytes were counted after %d", end, before)
		}
		if _, err := again.Stdin().Write([]byte("mark\n")); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, end+5-before)
		if _, err := io.ReadFull(again.Stdout(), got); err != nil {
			t.Fatal(err)
		}
		if want := strings.Repeat(string(frame), int(end-before)/len(frame)) + "mark\n"; string(got) != want {
			t.Fatalf("%d bytes came, ending in %q", len(got), got[max(0, len(got)-20):])
		}
		before = end + 5
		info, err := again.Inspect(t.Context())
		if err != nil || info.InputEnd != before || info.OutputEnd != before {
			t.Fatalf("%+v, %v: want %d", info, err, before)
		}
		again.Detach()
	}
}

// What was counted is written although the client died before the agent read it.
func TestCountedInputOutlivesItsClient(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	run := start(t, root, sh(`read x; exec cat`))
	run.Detach()
	eventually(t, "the run is known", func() bool { return exists(t, root.path(run.ID()), specFile) })
	big := bytes.Repeat([]byte("x"), 300<<10) // more than a pipe holds
	conn := owner(t, root, run.ID())
	if _, err := conn.Write(inputFrame(t, 1, append([]byte("\n"), big...))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is counted", func() bool { return root.look(t.Context(), run.ID()).InputEnd > 0 })
	_ = conn.Close()
	again := attach(t, root, run.ID(), 0)
	if err := again.Stdin().Close(); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, again.Stdout()); got != string(big) || again.Info().InputEnd != int64(len(big)+1) {
		t.Errorf("%d bytes of %d came, %d were counted", len(got), len(big), again.Info().InputEnd)
	}
}

func TestInputThatFindsNoRoomIsRefusedAndNotCounted(t *testing.T) {
	root := openRoot(t, Options{})
	run := start(t, root, sh(`sleep 600`))
	run.Detach()
	eventually(t, "the run is known", func() bool { return exists(t, root.path(run.ID()), specFile) })
	conn := owner(t, root, run.ID())
	defer conn.Close()
	const most, size = 1 + inputQueue, 100 << 10 // one in the pipe, the others wait
	frame := make([]byte, size)
	for seq := range int64(most + 3) {
		if _, err := conn.Write(inputFrame(t, seq+1, frame)); err != nil {
			t.Fatal(err)
		}
		if seq == 0 { // it waits for the agent, and no longer in the queue
			time.Sleep(20 * time.Millisecond)
		}
	}
	r := newFrameReader(conn)
	for refused := 0; refused < 3; {
		k, payload, err := r.next()
		if err != nil {
			t.Fatal(err)
		}
		if k == kindReply && strings.Contains(string(payload), "does not read") {
			refused++
		}
	}
	if got := root.look(t.Context(), run.ID()).InputEnd; got > most*size || got < (most-1)*size {
		t.Errorf("%d bytes are counted", got)
	}
}

func TestInputAfterATakeoverIsRefused(t *testing.T) {
	t.Parallel()
	srv := &server{input: make(chan inputItem, inputQueue)}
	first, second := &session{srv: srv}, &session{srv: srv}
	srv.owner = second
	if err := srv.queueInput(first, inputItem{data: []byte("late")}); !errors.Is(err, errNotOwner) || srv.inputEnd != 0 {
		t.Errorf("%v, %d bytes", err, srv.inputEnd)
	}
	if err := srv.queueInput(second, inputItem{data: []byte("mine")}); err != nil || srv.inputEnd != 4 {
		t.Errorf("%v, %d bytes", err, srv.inputEnd)
	}
	if err := srv.queueInput(second, inputItem{last: true}); err != nil || !srv.inputDone {
		t.Errorf("%v", err)
	}
	if err := srv.queueInput(second, inputItem{data: []byte("x")}); !errors.Is(err, os.ErrClosed) || srv.inputEnd != 4 {
		t.Errorf("%v, %d bytes", err, srv.inputEnd)
	}
}
