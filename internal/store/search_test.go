package store

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// manyEntries stores n ended entries in sessions of 100 entries. Every 100th session is of chatB, the others are of
// chatA. Every entry has the word "parser", every 1,000th "tokenizer", and one of chatB's first ones "needle".
func manyEntries(tb testing.TB, db *DB, n int) {
	tb.Helper()
	must(tb, db.write(tb.Context(), func(t tx) error {
		if _, err := t.Exec(`WITH RECURSIVE s (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i < ?1 / 100 - 1)
			INSERT INTO sessions (id, chat, topic, title, dir, created, used, messages, cost_usd, tokens)
			SELECT 'session-' || i, CASE WHEN i % 100 = 0 THEN ?2 ELSE ?3 END,
				CASE WHEN i % 100 = 0 THEN ?4 ELSE ?5 END, 'session ' || i, '/src', ?6 + i, ?6 + i, 100, 0, 0 FROM s`,
			n, chatB.Chat, chatA.Chat, chatB.Topic, chatA.Topic, millis(noon)); err != nil {
			return err
		}
		_, err := t.Exec(`WITH RECURSIVE e (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM e WHERE i < ?1 - 1)
			INSERT INTO turns (id, session, chat, topic, person, prompt, message, state, agent, model, queued, started,
				ended, answer, outcome, delivered, number)
			SELECT 'turn-' || i, s.id, s.chat, s.topic, 9, 'Why is the parser slow with case ' || i || '?', 0, 'done',
				'claude', '', ?2 + i, ?2 + i, ?2 + i, CASE WHEN i % 1000 = 0 THEN 'The tokenizer. ' ELSE '' END ||
				CASE i WHEN 50 THEN 'A needle. ' ELSE '' END || replace(printf('%.*c', 40, 'x'), 'x',
				'It reads byte ' || i || ' twice. '), '{}', 1, i + 1
			FROM e JOIN sessions s ON s.id = 'session-' || (i / 100)`, n, millis(noon))
		return err
	}))
}

// searchCase is a search of manyEntries, with the number of sessions that it finds.
type searchCase struct {
	name, words string
	in          orchestrator.ConversationID
	dir         string
	found       int
}

func searchCases() []searchCase {
	return []searchCase{
		{"common", "parser", chatA, "", 20}, {"prefix", "rea", chatA, "", 20},
		{"two", "parser tokenizer", chatA, "", 20}, {"rare", "tokenizer", chatA, "/src", 20}, {"few", "parser", chatB, "", 10}, {"needle", "needle", chatB, "", 1},
		{"none", "nowhere", chatA, "", 0}, {"list", "", chatA, "", 20},
	}
}

func (c searchCase) query() orchestrator.SessionQuery {
	return orchestrator.SessionQuery{Conversation: c.in, Words: c.words, Dir: c.dir, Limit: 20}
}

// BenchmarkSearch searches 100,000 entries. The target is 50 ms for each search.
func BenchmarkSearch(b *testing.B) {
	db := newDB(b)
	manyEntries(b, db, 100_000)
	for _, c := range searchCases() {
		b.Run(c.name, func(b *testing.B) {
			took, before := make([]time.Duration, 0, 1000), cpuTime()
			for b.Loop() {
				began := time.Now()
				found, _, err := db.FindSessions(b.Context(), c.query())
				took = append(took, time.Since(began))
				if err != nil || len(found) != c.found {
					b.Fatalf("found %d, %v", len(found), err)
				}
			}
			b.ReportMetric(float64((cpuTime()-before).Microseconds())/1000/float64(len(took)), "cpu-ms")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
		})
	}
}

// cpuTime returns the time that this process has used a processor: on a busy machine the clock counts others, too.
func cpuTime() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// A search finds the sessions of its scope, however many entries others have. It reads entries by indexes only, and of a
// large scope no more than the newest ones with the words.
func TestASearchOfManyEntriesIsBounded(t *testing.T) {
	db := newDB(t)
	manyEntries(t, db, 12_000)
	for _, c := range searchCases() {
		found, _, err := db.FindSessions(t.Context(), c.query())
		want := c.found
		switch {
		case c.in == chatB:
			want = min(want, 2) // of 120 sessions
		case strings.Contains(c.words, "tokenizer"):
			want = 10 // two of 12 are in sessions of chatB
		}
		if err != nil || len(found) != want {
			t.Errorf("%s finds %d, %v; want %d", c.name, len(found), err, want)
		}
		for _, f := range found {
			if f.Session.Conversation != c.in || c.words == "needle" && !strings.Contains(f.Excerpt, "A needle. It reads") {
				t.Errorf("%s finds %+v", c.name, f)
			}
		}
	}
	for _, small := range []bool{true, false} {
		statement, args := searchStatement(searchCases()[0].query(), `"parser"*`, small)
		plan, err := sqlite.Many(t.Context(), db.file, func(row sqlite.Row) (step string, err error) {
			var id, parent, unused int
			err = row.Scan(&id, &parent, &unused, &step)
			return step, err
		}, "EXPLAIN QUERY PLAN "+statement, args...)
		if err != nil || len(plan) == 0 {
			t.Fatalf("explain: %v", err)
		}
		for _, step := range plan {
			has := func(part string) bool { return strings.Contains(step, part) }
			scan := strings.HasPrefix(step, "SCAN ") && !strings.HasPrefix(step, "SCAN h") && !has("VIRTUAL TABLE")
			if scan || strings.HasPrefix(step, "SEARCH t ") && !has("turns_of") && !has("PRIMARY KEY") {
				t.Errorf("small %v: the search reads all rows: %s\n%s", small, step, strings.Join(plan, "\n"))
			}
		}
		if !small && !strings.Contains(statement, "LIMIT "+fmt.Sprintf("?%d", slices.Index(args, any(maxHits))+1)) {
			t.Errorf("the hits have no limit: %s", statement)
		}
	}
}
