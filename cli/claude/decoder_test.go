package claude

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const deltaTail = `},"session_id":"7b409ce8-aac6-4453-adb7-8408089d1230","parent_tool_use_id":null,"uuid":"0f960155-6150-4fa6-927b-1daa9a19ef80"}`

func deltaOf(index, delta string) string {
	return `{"type":"stream_event","event":{"type":"content_block_delta","index":` + index + `,"delta":` + delta + deltaTail
}

// newDelta returns a delta with another end, as Claude Code 2.1.332 writes it.
func newDelta(end string) string {
	return strings.TrimSuffix(deltaOf("0", `{"type":"text_delta","text":"x"}`), `"}`) + end
}

// deltaCases returns lines, and whether the fast path recognizes them.
func deltaCases() map[string]bool {
	return map[string]bool{
		deltaOf("0", `{"type":"text_delta","text":"Hello"}`):                                         true,
		deltaOf("12", `{"type":"text_delta","text":"grüße 😀"}`):                                      true,
		deltaOf("1", `{"type":"text_delta","text":""}`):                                              true,
		deltaOf("1", `{"type":"text_delta","text":"a \"quoted\" line\n\\ \u00e9 \ud83d\ude00"}`):     true,
		deltaOf("1", `{"type":"thinking_delta","thinking":"hmm"}`):                                   true,
		deltaOf("2", `{"type":"input_json_delta","partial_json":"{\"command\": \"ls"}`):              true,
		strings.Replace(deltaOf("0", `{"type":"text_delta","text":"x"}`), "null", `"toolu_1"`, 1):    false,
		deltaOf("0", `{"type":"signature_delta","signature":"c2ln"}`):                                false,
		deltaOf("0", `{"type":"text_delta","text":"x","more":1}`):                                    false,
		deltaOf("0", `{"type":"text_delta","text":5}`):                                               false,
		deltaOf("-1", `{"type":"text_delta","text":"x"}`):                                            false,
		deltaOf("007", `{"type":"text_delta","text":"x"}`):                                           false,
		deltaOf("12345678", `{"type":"text_delta","text":"x"}`):                                      true,
		deltaOf("0", "{\"type\":\"text_delta\",\"text\":\"\xff\"}"):                                  false,
		deltaOf("0", "{\"type\":\"text_delta\",\"text\":\"a\tb\"}"):                                  false,
		deltaOf("0", `{"type":"text_delta","text":"x\q"}`):                                           false,
		strings.TrimSuffix(deltaOf("0", `{"type":"text_delta","text":"x"}`), "}"):                    false,
		deltaOf("0", `{"type":"text_delta","text":"x"}`) + " ":                                       false,
		newDelta(`","api_message_id":"msg_1"}`):                                                      true,
		newDelta(`","api_message_id":"msg_1","api_message_id":"msg_2"}`):                             false,
		newDelta(`","api_message_id":"msg_1","more":1}`):                                             false,
		newDelta(`","api_message_id":null}`):                                                         false,
		newDelta(`","api_message_id":"\u006d"}`):                                                     false,
		strings.Replace(deltaOf("0", `{"type":"text_delta","text":"x"}`), `,"uuid"`, `,"ttft":1`, 1): false,
		`{"type":"stream_event","event":{"type":"content_block_delta","index":`:                      false,
		``: false,
	}
}

func TestDeltasAreReadTheShortWay(t *testing.T) {
	var d decoder // shared, because no data of a line may remain for the next
	for raw, short := range deltaCases() {
		if got := sameAsJSON(t, &d, []byte(raw)); got != short {
			t.Errorf("%s\nis read the short way: %t, want %t", raw, got, short)
		}
	}
}

func TestEveryRecordedDeltaIsReadTheShortWay(t *testing.T) {
	files, err := filepath.Glob("testdata/*/in.ndjson")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	deltas := 0
	var d decoder
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(string(raw)) {
			if !strings.Contains(l, `_delta","text":`) || !strings.HasPrefix(l, `{"type":"stream_event",`) {
				continue
			}
			deltas++
			if !sameAsJSON(t, &d, []byte(strings.TrimSuffix(l, "\n"))) {
				t.Errorf("%s: %s", file, l)
			}
		}
	}
	if deltas == 0 {
		t.Error("the recordings have no deltas of text")
	}
}

// sameAsJSON reports whether d recognizes raw. It checks that d decodes the same as the JSON decoder.
func sameAsJSON(t *testing.T, d *decoder, raw []byte) bool {
	t.Helper()
	got, ok := &d.line, d.piece(raw)
	if !ok {
		return false
	}
	want, err := decodeWhole(raw)
	if err != nil {
		t.Fatalf("%q is read the short way, and is no JSON: %v", raw, err)
	}
	if diff := cmp.Diff(fmt.Sprintf("%+v %+v %+v", want.Type, want.SessionID, want.Parent), fmt.Sprintf("%+v %+v %+v", got.Type, got.SessionID, got.Parent)); diff != "" {
		t.Fatalf("%q:\n%s", raw, diff)
	}
	if diff := cmp.Diff(want.Event, got.Event); diff != "" {
		t.Fatalf("%q:\n%s", raw, diff)
	}
	return true
}

func FuzzDelta(f *testing.F) {
	for raw := range deltaCases() {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var d decoder
		sameAsJSON(t, &d, raw)
		sameAsJSON(t, &d, []byte(deltaOf("3", fmt.Sprintf(`{"type":"text_delta","text":"%s"}`, raw))))
	})
}
