package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestVersionsAgreeOrSayWhy(t *testing.T) {
	t.Parallel()
	const id = "drill"
	dir := t.TempDir()
	theirs := func(p string) []string { return []string{self(t), "supervise", "protocol=" + p} }
	for _, tc := range []struct {
		name       string
		supervisor string
		client     Protocol
		refused    bool
	}{
		{"a newer client adopts", "3:3", Protocol{5, 3}, false},
		{"an older client adopts", "5:3", Protocol{3, 2}, false},
		{"too old a supervisor", "3:3", Protocol{5, 4}, true},
		{"too old a client", "5:4", Protocol{3, 2}, true},
	} {
		var theirP Protocol
		if _, err := fmt.Sscanf(tc.supervisor, "%d:%d", &theirP.Version, &theirP.Min); err != nil {
			t.Fatal(err)
		}
		starter := reopen(t, dir, Options{Command: theirs(tc.supervisor), Protocol: theirP})
		spec := sh(`echo one; sleep 600`)
		spec.ID = id
		run := start(t, starter, spec)
		readLine(t, run.Stdout())
		run.Detach()

		root := reopen(t, dir, Options{Protocol: tc.client})
		again, err := root.Attach(t.Context(), id, 0)
		infos, listErr := root.List(t.Context())
		if listErr != nil || len(infos) != 1 || infos[0].Protocol != theirP || !infos[0].Alive {
			t.Errorf("%s: listed as %+v, %v", tc.name, infos, listErr)
		}
		var no *VersionError
		if tc.refused {
			if !errors.As(err, &no) || no.Client != tc.client || no.Supervisor != theirP ||
				!strings.Contains(err.Error(), theirP.String()) || !strings.Contains(err.Error(), tc.client.String()) {
				t.Errorf("%s: %v", tc.name, err)
			}
			if !strings.Contains(infos[0].Problem, "protocol") {
				t.Errorf("%s: listed without a word: %+v", tc.name, infos[0])
			}
		} else if err != nil || readLine(t, again.Stdout()) != "one" {
			t.Errorf("%s: %v", tc.name, err)
		}
		if err := root.Kill(t.Context(), id); err != nil { // whatever it speaks
			t.Errorf("%s: kill: %v", tc.name, err)
		}
		if left := survivors(t, id); len(left) > 0 {
			t.Errorf("%s: %v are left", tc.name, left)
		}
		if err := starter.Collect(t.Context(), id); err != nil {
			t.Errorf("%s: collect: %v", tc.name, err)
		}
	}
}

func TestStrangeHellosAreRefused(t *testing.T) {
	root := openRoot(t, Options{})
	run := start(t, root, sh(`cat`))
	rec, err := root.record(run.ID())
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string]string{
		"garbage":        "GET / HTTP/1.1\r\n\r\n",
		"no hello":       "Q\x00\x00\x00\x02{}",
		"not json":       "H\x00\x00\x00\x02{{",
		"unknown role":   `{"version":1,"min_version":1,"role":"dance"}`,
		"second start":   `{"version":1,"min_version":1,"role":"start","spec":{"id":"x","path":"/bin/sh"}}`,
		"negative":       `{"version":1,"min_version":1,"role":"own","offset":-1}`,
		"behind the end": `{"version":1,"min_version":1,"role":"own","offset":5}`,
	} {
		conn, err := root.net.dial(t.Context(), root.path(rec.ID))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(raw, "{") {
			err = (&frameWriter{w: conn}).bytes(kindHello, []byte(raw))
		} else {
			_, err = io.WriteString(conn, raw)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = closeWrite(conn)
		answer, err := io.ReadAll(conn)
		if err == nil && len(answer) > 0 && answer[0] != byte(kindRefused) {
			t.Errorf("%s: answered with %q", name, answer)
		}
		_ = conn.Close()
	}
	if _, err := io.WriteString(run.Stdin(), "still here\n"); err != nil {
		t.Fatal(err)
	}
	if got := readLine(t, run.Stdout()); got != "still here" {
		t.Errorf("%q", got)
	}
}

func closeWrite(c io.Closer) error { return c.(interface{ CloseWrite() error }).CloseWrite() }

func TestUnknownFieldsAndRequestsAreNoTrouble(t *testing.T) {
	root := openRoot(t, Options{})
	run := start(t, root, sh(`cat`))
	rec, err := root.record(run.ID())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := root.net.dial(t.Context(), root.path(rec.ID))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w, r := &frameWriter{w: conn}, newFrameReader(conn)
	for _, f := range []struct {
		k    kind
		body string
	}{
		{kindHello, `{"version":1,"min_version":1,"role":"ask","colour":"green","spec":{"shape":[1,2]}}`},
		{'~', "a frame of a later version"},
		{kindRequest, `{"seq":1,"op":"sing","tune":7}`},
		{kindRequest, `{"seq":2,"op":"resize","rows":7}`},
	} {
		if err := w.bytes(f.k, []byte(f.body)); err != nil {
			t.Fatal(err)
		}
	}
	if k, _, err := r.next(); err != nil || k != kindWelcome {
		t.Fatalf("%q, %v", k, err)
	}
	answers := map[uint64]reply{}
	for range 2 {
		k, payload, err := r.next()
		var answer reply
		if err != nil || k != kindReply || json.Unmarshal(payload, &answer) != nil {
			t.Fatalf("%q %s, %v", k, payload, err)
		}
		answers[answer.Seq] = answer
	}
	if answers[1].Error == "" || answers[2].Error != "" {
		t.Errorf("%+v", answers)
	}
}
