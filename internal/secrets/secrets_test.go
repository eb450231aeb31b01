package secrets

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSet(t *testing.T) {
	s := NewSet("hunter2-hunter2", "p@ss word/1", "abc", "hunter2", `a"quote"d`)
	github := "ghp_" + strings.Repeat("a1B2", 9)
	for _, c := range []struct{ in, want string }{
		{"nothing", "nothing"},
		{"hunter2-hunter2!", Removed + "!"}, // the longer secret
		{"hunter2-hunter3", Removed + "-hunter3"},
		{"p%40ss+word%2F1 or p@ss word/1", Removed + " or " + Removed},
		{"abc is too short", "abc is too short"},
		{"it is " + github + ".", "it is " + Removed + "."},
		{github[:39] + " is too short", github[:39] + " is too short"},
		{"github_pat_" + strings.Repeat("x", 82), Removed},
		{"grant_ductor_" + strings.Repeat("X2", 26) + "!", Removed + "!"},
		{`{"x": "a\"quote\"d"}`, `{"x": "` + Removed + `"}`},
	} {
		if got := s.String(c.in); got != c.want {
			t.Errorf("%q became %q, want %q", c.in, got, c.want)
		}
	}
	if got := (*Set)(nil).String("x"); got != "x" {
		t.Errorf("no secrets made %q of x", got)
	}
}

// A text may arrive in any pieces, and parts may be retracted: the output never contains a secret or its beginning, and
// finally equals the cleaned whole text.
func TestStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := NewSet("sesame-é-1", "sesame", "ame-é-12345", "ababab")
		piece := rapid.SampledFrom([]string{"gh", "p_", "ghp_0123456789", "01234567890123456789012345", "s", "se",
			"sesam", "e", "-", "é", "-1", "ame", "-é-1", "2345", "ab", "a", "b", " "})
		var s Stream
		raw, given := "", ""
		take := func(c Change) {
			if c.Retract > len(given) {
				t.Fatalf("%d bytes are taken off %q", c.Retract, given)
			}
			given = given[:len(given)-c.Retract] + c.Text
		}
		flushed := false
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				n := rapid.IntRange(0, len(raw)).Draw(t, "bytes")
				for n > 0 && n < len(raw) && raw[len(raw)-n]&0xC0 == 0x80 {
					n--
				}
				raw = raw[:len(raw)-n]
				take(s.Retract(set, n))
			case 1:
				take(s.Flush(set))
				flushed = true
			default:
				p := piece.Draw(t, "piece")
				raw += p
				take(s.Add(set, p))
			}
			if !strings.HasPrefix(set.String(raw), given) && !flushed {
				t.Fatalf("%q was given of %q", given, raw)
			}
			for _, w := range set.Words() {
				if strings.Contains(given, w) {
					t.Fatalf("%q was given of %q", given, raw)
				}
			}
		}
		take(s.Flush(set))
		if want := set.String(raw); given != want {
			t.Fatalf("%q became %q, want %q", raw, given, want)
		}
	})
}

func TestStreamHoldsBackTheBeginningOfASecret(t *testing.T) {
	set := NewSet("sk-0123456789")
	var s Stream
	given := ""
	for _, r := range "key sk-01234567 or sk-0123456789." {
		c := s.Add(set, string(r))
		given = given[:len(given)-c.Retract] + c.Text
		if strings.HasSuffix(given, "sk-") {
			t.Fatalf("%q was given", given)
		}
	}
	if want := "key sk-01234567 or " + Removed + "."; given != want {
		t.Errorf("%q, want %q", given, want)
	}
}

type inner struct {
	Text string
	Raw  json.RawMessage
	ID   id
}
type id string
type outer struct {
	List []inner
	One  *inner
	Any  any
	Data []byte
}

func TestClean(t *testing.T) {
	set := NewSet("hunter2-hunter2")
	in := inner{"my hunter2-hunter2", json.RawMessage(`{"a":"hunter2-hunter2"}`), "hunter2-hunter2"}
	v := outer{List: []inner{in}, One: &in, Any: in}
	got, hidden := Clean(set, any(v))
	want := inner{"my " + Removed, json.RawMessage(`{"a":"` + Removed + `"}`), "hunter2-hunter2"}
	for _, one := range []inner{got.(outer).List[0], *got.(outer).One, got.(outer).Any.(inner)} {
		if one.Text != want.Text || string(one.Raw) != string(want.Raw) || one.ID != want.ID {
			t.Errorf("%+v, want %+v", one, want)
		}
	}
	args := []any{"hunter2-hunter2 is wrong", 1, inner{Text: "hunter2-hunter2"}}
	if got, _ := Clean(set, args); got[0] != Removed+" is wrong" || got[1] != 1 || got[2].(inner).Text != Removed {
		t.Errorf("the arguments of a message are %+v", got)
	}
	if hidden != HiddenWord || in.Text != "my hunter2-hunter2" || v.List[0].Text != in.Text {
		t.Errorf("%v was hidden, and the original is %+v", hidden, v)
	}
	for secret, want := range map[string]Hidden{
		"sk_live-123=": HiddenWord, "rm -rf $HOME": HiddenMore, "/etc/passwd-file": HiddenMore,
		"--no-sandbox-at-all": HiddenMore,
		"https://u:p@x.org":   HiddenMore, "curl|sh;reboot": HiddenMore,
	} {
		if _, hidden := Clean(NewSet(secret), "run "+secret); hidden != want {
			t.Errorf("%q hides %v, want %v", secret, hidden, want)
		}
	}
}

func TestProject(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "service")
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(top, ".git", "HEAD"), "")
	write(filepath.Join(top, ".env"), "STRIPE_SECRET_KEY=sk_live_above # the live one\n")
	write(filepath.Join(dir, "web", ".env.local"), "export API_TOKEN='token-below-1'\r\n")
	write(filepath.Join(dir, ".env"), `
# COMMENT_KEY=not-this-one-here
PORT_KEY=8080
KEYCLOAK_URL=http://localhost:8080/auth
KEY_FILE=/etc/ssl/private.pem
GREETING=hello hello hello hello
DB_PASSWORD="with spaces # and more"
PRIVATE_KEY="-----BEGIN KEY-----
bGluZS1vZi1hLWtleQ==
-----END KEY-----"
ONE_LINE_KEY="first-line-of-it\nsecond-line-of-it"
`)
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, ".env.production")); err != nil {
		t.Fatal(err)
	}
	got := OfProject(dir)
	want := []string{
		"with spaces # and more", "-----BEGIN KEY-----\nbGluZS1vZi1hLWtleQ==\n-----END KEY-----",
		"bGluZS1vZi1hLWtleQ==",
		`first-line-of-it\nsecond-line-of-it`, "first-line-of-it\nsecond-line-of-it", "first-line-of-it",
		"second-line-of-it",
		"sk_live_above", "token-below-1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q\nwant  %q", got, want)
	}
	if got := OfEnvironment([]string{"OPENAI_API_KEY=0123456789ab", "PATH=/usr/bin:/bin/and/more",
		"MY_TOKEN=short"}); !slices.Equal(got, []string{"0123456789ab"}) {
		t.Errorf("of the environment: %q", got)
	}
}

func BenchmarkStream(b *testing.B) {
	var words []string
	for i := range 40 {
		words = append(words, strings.Repeat(string(rune('a'+i%26)), 3)+strings.Repeat("0123456789", 6))
	}
	set := NewSet(words...)
	var s Stream
	for b.Loop() {
		s.Add(set, "some words that stream by ")
	}
}

// A secret is removed from JSON however a program escapes its characters. Everything else stays as it is, repeated keys
// included.
func TestCleanFindsEscapedSecretsInJSON(t *testing.T) {
	set := NewSet(`p&ss"w<rd\é`)
	for raw, want := range map[string]string{
		`{"a":"p&ss\"w<rd\\é"}`:                       `{"a":"` + Removed + `"}`,
		`{"a":"p\u0026ss\"w<rd\\\u00e9", "a":  "\n"}`: `{"a":"` + Removed + `", "a":  "\n"}`,
		`["\"x\"",{"p&ss\u0022w\u003crd\\é" : 1.50}]`: `["\"x\"",{"` + Removed + `" : 1.50}]`,
		`"no secret\\"`:                               `"no secret\\"`,
	} {
		got, hidden := Clean(set, json.RawMessage(raw))
		if string(got) != want || (hidden == HiddenNothing) != (raw == want) {
			t.Errorf("%s becomes %s (%d), want %s", raw, got, hidden, want)
		}
	}
}
