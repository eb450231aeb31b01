package claude

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ductor/cli"
)

// FuzzParser feeds any bytes as the output of one process: no panic, one Result a turn and nothing after
// it, every tool ended, and the deltas fold to the answer.
func FuzzParser(f *testing.F) {
	inputs, err := filepath.Glob("testdata/*/in.*json")
	if err != nil {
		f.Fatal(err)
	}
	for _, input := range inputs {
		raw, err := os.ReadFile(input)
		if err != nil {
			f.Fatal(err)
		}
		if len(raw) < 16<<10 {
			f.Add(raw)
		}
	}
	f.Add([]byte("{\"type\":\"stream_event\",\"event\":{\"type\":\"content_block_stop\"}}\n\xff\xfe[]\n{}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		mem := newMemory()
		c := &checker{t: t}
		p := c.turn(mem)
		for _, l := range bytes.Split(raw, []byte("\n")) {
			if _, end := p.line(l); end {
				c.finish(p)
				p = c.turn(mem)
			}
		}
		c.finish(p)
		parseJSON(c.turn(mem), raw)
	})
}

type checker struct {
	t       interface{ Fatalf(string, ...any) }
	answer  cli.Answer
	open    map[cli.ToolID]bool
	results int
}

func (c *checker) turn(mem *memory) *parser {
	c.answer, c.open, c.results = cli.Answer{}, map[cli.ToolID]bool{}, 0
	p := newParser(cli.NewEmitter(agent, time.Now, c.event), mem, "/srv/proj")
	p.echo = "E"
	p.unasked = func(cli.Result) {}
	return p
}

func (c *checker) event(ev cli.Event) {
	if c.results > 0 {
		c.t.Fatalf("%#v after the result", ev)
	}
	c.answer.Add(ev)
	switch ev := ev.(type) {
	case cli.ToolStarted:
		if c.open[ev.ID] {
			c.t.Fatalf("tool %s started twice", ev.ID)
		}
		c.open[ev.ID] = true
	case cli.ToolEnded:
		if !c.open[ev.ID] {
			c.t.Fatalf("tool %s ended and was not open", ev.ID)
		}
		delete(c.open, ev.ID)
	case cli.Result:
		c.results++
		if ev.Text != c.answer.String() {
			c.t.Fatalf("deltas make %q, the answer is %q", c.answer.String(), ev.Text)
		}
	}
}

func (c *checker) finish(p *parser) {
	p.em.Finish(p.outcome)
	if c.results != 1 || len(c.open) > 0 {
		c.t.Fatalf("%d results, open tools %v", c.results, c.open)
	}
}
