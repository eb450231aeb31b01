package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/docker/dockertest"
	"ductor/heartbeat/webhook"
	"ductor/internal/sim/telegram"
)

// webhookDaemon is a daemon with a webhook of each kind. Their runs are shown in the neighbour's chat.
type webhookDaemon struct {
	*town
	pid    int
	addr   string
	client *http.Client
	runs   *telegram.Chat // shows the runs of the webhooks
	shows  []string       // texts of the runs of accepted deliveries
}

// burst is the number of deliveries that the webhook "github" accepts at once.
const burst = 6

// unusedAddr returns a free address on this machine.
func unusedAddr(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", dockertest.FreePort(t))
}

func besiege(t *testing.T) *webhookDaemon {
	t.Helper()
	addr := unusedAddr(t)
	town := surroundings(t, nil)
	b := &webhookDaemon{town: town, addr: addr, runs: town.srv.Private(neighbour, "Neighbour"),
		client: &http.Client{Timeout: patience, Transport: &http.Transport{MaxConnsPerHost: 40,
			MaxIdleConnsPerHost: 40}}}
	path := town.writeConfig()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Replace(string(text), fmt.Sprintf("allowed_users = [%d]", owner),
		fmt.Sprintf("allowed_users = [%d, %d]", owner, neighbour), 1)
	all += fmt.Sprintf("\n[webhooks]\nlisten = %q\n", addr)
	for _, auth := range []string{"bearer", "github", "stripe"} {
		all += fmt.Sprintf("\n[webhooks.hooks.%s]\nauth = %q\nsecret = %q\nprompt = \"[[start]] {{payload.say}}\"\nbody_max_kb = 64\nper_minute = %d\nchat = %d\n",
			auth, auth, hookSecret, burst, neighbour)
	}
	if err := os.WriteFile(path, []byte(all), 0o600); err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, "run", "-c", path)
	b.pid = d.cmd.Process.Pid
	if err := town.srv.AwaitPoll(town.soon()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.client.CloseIdleConnections)
	return b
}

// delivery is one call of a webhook.
type delivery struct {
	hook, body string
	header     [2]string
	long       int64 // number of zeros to send instead of the body
	said       bool  // send a Content-Length
}

func macOf(secret, text string) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(text))
	return hex.EncodeToString(m.Sum(nil))
}

// promptToPrint returns a prompt that makes the run's agent print a name.
func promptToPrint(name any) string {
	return fmt.Sprintf(`{"id":"evt_%v","say":"[[text \"ran <%v>\"]]"}`, name, name)
}

func bearer(secret, body string) delivery {
	return delivery{hook: "bearer", body: body, header: [2]string{"Authorization", "Bearer " + secret}}
}

func github(secret, body string) delivery {
	return delivery{hook: "github", body: body,
		header: [2]string{"X-Hub-Signature-256", "sha256=" + macOf(secret, body)}}
}

func stripe(secret, body string, at time.Time) delivery {
	stamp := strconv.FormatInt(at.Unix(), 10)
	return delivery{hook: "stripe", body: body,
		header: [2]string{"Stripe-Signature", "t=" + stamp + ",v1=" + macOf(secret, stamp+"."+body)}}
}

func (d delivery) longer(said bool) delivery { d.long, d.said = 10<<20, said; return d }

// call delivers and returns the status of the response, or 0 if ductor hangs up on an unwanted body.
func (b *webhookDaemon) call(d delivery) int {
	var body io.Reader = strings.NewReader(d.body)
	if d.long > 0 {
		body = io.LimitReader(zeros{}, d.long)
	}
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, "http://"+b.addr+"/hooks/"+d.hook, body)
	if err != nil {
		b.t.Error(err)
		return -1
	}
	if d.said {
		req.ContentLength = d.long
	}
	req.Header.Set(d.header[0], d.header[1])
	answer, err := b.client.Do(req)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body) // allows the connection to be reused
	return answer.StatusCode
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// The webhooks reject all attacks with the right status or queue the deliveries. ductor's memory stays small and its
// chats work. Accepted deliveries run once, and nothing else runs.
func TestWebhooksUnderAttack(t *testing.T) {
	b := besiege(t)
	b.say(`[[start]] [[text "peace"]]`)
	b.await("peace")
	before := b.memory("VmRSS")
	b.sendForgeries()
	b.sendSlowBodies()
	b.flood(2000)
	grown := b.memory("VmHWM") - before
	if t.Logf("ductor grew by %d kB", grown); grown > 64<<10 {
		t.Error("that is too much")
	}
	b.checkOnlyAcceptedRan()
}

// sendForgeries sends invalid deliveries one by one.
func (b *webhookDaemon) sendForgeries() {
	now := time.Now()
	one, two, three := promptToPrint("one"), promptToPrint("two"), promptToPrint("three")
	again := bearer(hookSecret, one)
	for _, c := range []struct {
		what string
		d    delivery
		want int
	}{
		{"bearer: another secret", bearer("another secret of them", one), 401},
		{"bearer: none", delivery{hook: "bearer", body: one, header: [2]string{"X-Nothing", "x"}}, 401},
		{"bearer: right", again, 202},
		{"github: another secret", github("another secret of them", two), 401},
		{"github: another body", delivery{hook: "github", body: one, header: github(hookSecret, two).header}, 401},
		{"github: right", github(hookSecret, two), 202},
		{"github: replayed", github(hookSecret, two), 409},
		{"stripe: another secret", stripe("another secret of them", three, now), 401},
		{"stripe: too old", stripe(hookSecret, three, now.Add(-time.Hour)), 401},
		{"stripe: of tomorrow", stripe(hookSecret, three, now.Add(24*time.Hour)), 401},
		{"stripe: right", stripe(hookSecret, three, now), 202},
		{"stripe: replayed", stripe(hookSecret, three, now), 409},
		{"stripe: the event again, signed anew", stripe(hookSecret, three, now.Add(time.Second)), 202},
		{"ten megabytes, as said", bearer(hookSecret, "").longer(true), 413},
		{"ten megabytes, unsaid", bearer(hookSecret, "").longer(false), 413},
		{"no such webhook", delivery{hook: "none", header: again.header}, 404},
	} {
		if got := b.call(c.d); got != c.want {
			b.t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
	b.shows = append(b.shows, "ran <one>", "ran <two>", "ran <three>")
}

// sendSlowBodies makes ductor wait for data that never comes: bodies for the called hook, then more incomplete headers
// than connections are allowed. Honest deliveries and the chat still work.
func (b *webhookDaemon) sendSlowBodies() {
	const enoughOnce = 24 // this many blocked all webhooks before each had its own slots
	for i := range 2 * webhook.MostConns {
		conn, err := (&net.Dialer{}).DialContext(b.soon(), "tcp", b.addr)
		if err != nil {
			b.t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /hooks/github HTTP/1.1\r\nHost: x\r\nX-Hub-Signature-256: sha256=%s\r\n",
			macOf("a guess", ""))
		switch {
		case i < enoughOnce:
			fmt.Fprint(conn, "Content-Length: 100\r\n\r\n{")
		case i == enoughOnce:
			b.checkAccepted("beside slow bodies")
		}
	}
	b.checkAccepted("beside twice as many as there may be")
	b.say(`[[start]] [[text "unmoved"]]`)
	b.await("unmoved")
}

// checkAccepted checks that a delivery is accepted at the first attempt.
func (b *webhookDaemon) checkAccepted(name string) {
	b.t.Helper()
	if code := b.call(github(hookSecret, promptToPrint(name))); code != http.StatusAccepted {
		b.t.Errorf("%s a delivery is answered %d", name, code)
		return
	}
	b.shows = append(b.shows, "ran <"+name+">")
}

// floodCall returns the i-th call of a flood, and its allowed statuses. One in ten is valid.
func floodCall(i int) (d delivery, may []int) {
	const full, hungUp = http.StatusServiceUnavailable, 0
	switch {
	case i%100 == 9:
		return github("a guess", "").longer(true), []int{413, hungUp}
	case i%100 == 59:
		return github("a guess", "").longer(false), []int{413, full, hungUp}
	case i%10 == 0:
		return github(hookSecret, promptToPrint(i)), []int{202, 429, full}
	case i%10 == 1:
		return github(hookSecret, promptToPrint("two")), []int{409, full}
	case i%10 == 2:
		return stripe(hookSecret, promptToPrint(i), time.Unix(int64(i), 0)), []int{401}
	case i%10 == 3:
		return bearer("a guess", promptToPrint(i)), []int{401}
	}
	return github("a guess", promptToPrint(i)), []int{401, full}
}

// flood makes n calls, at up to a thousand a second, while the owner uses the chat.
func (b *webhookDaemon) flood(n int) {
	var mu sync.Mutex
	codes := map[int]int{}
	calls := make(chan int)
	var callers sync.WaitGroup
	for range 40 {
		callers.Go(func() {
			for i := range calls {
				d, may := floodCall(i)
				code := b.call(d)
				mu.Lock()
				codes[code]++
				if code == http.StatusAccepted {
					b.shows = append(b.shows, fmt.Sprintf("ran <%d>", i))
				}
				mu.Unlock()
				if !slices.Contains(may, code) {
					b.t.Errorf("call %d to %s is answered %d, want one of %d", i, d.hook, code, may)
				}
			}
		})
	}
	began, over := time.Now(), make(chan struct{})
	go func() {
		defer close(over)
		for i := range n {
			time.Sleep(time.Until(began.Add(time.Duration(i) * time.Millisecond)))
			calls <- i
		}
		close(calls)
		callers.Wait()
	}()
	said := 0
	for flooding := true; flooding; said++ {
		b.say(`[[start]] [[text "calm number %d."]]`, said)
		b.await(fmt.Sprintf("calm number %d.", said))
		select {
		case <-over:
			flooding = false
		default:
		}
	}
	b.t.Logf("%d calls in %s, answered %v; the owner was answered %d times meanwhile", n,
		time.Since(began).Round(time.Millisecond), codes, said)
	for _, code := range []int{202, 401, 409, 429} {
		if codes[code] == 0 {
			b.t.Errorf("none of the flood is answered %d: %v", code, codes)
		}
	}
	if most := burst + int(time.Since(began)/(10*time.Second)) + 1; codes[202] > most {
		b.t.Errorf("%d of the flood are taken, which may be %d", codes[202], most)
	}
}

// checkOnlyAcceptedRan checks the chat of the webhooks after all accepted deliveries have run.
func (b *webhookDaemon) checkOnlyAcceptedRan() {
	if _, err := b.runs.Await(b.soon(), func(v telegram.View) bool {
		return len(ended(v)) >= len(b.shows)
	}); err != nil {
		b.t.Errorf("%v: %s", err, b.runs.Transcript())
	}
	b.runs.Person().Send(b.runs, `[[start]] [[text "the last"]]`) // queued after everything else
	if _, err := b.runs.AwaitText(b.soon(), "the last"); err != nil {
		b.fatal(err)
	}
	text := joined(b.runs.View())
	for _, want := range b.shows {
		if n := strings.Count(text, want); n != 1 {
			b.t.Errorf("%q is shown %d times", want, n)
		}
	}
	if n := strings.Count(text, "ran <"); n != len(b.shows) {
		b.t.Errorf("%d runs are shown, %d were taken", n, len(b.shows))
	}
}

// memory returns a memory figure of the daemon in kB.
func (b *webhookDaemon) memory(field string) int {
	b.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.pid))
	if err != nil {
		b.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), field+":")
	size, err := strconv.Atoi(strings.Fields(rest + " none")[0])
	if err != nil {
		b.t.Fatalf("%s: %v", field, err)
	}
	return size
}
