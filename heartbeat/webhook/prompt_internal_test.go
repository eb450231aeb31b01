package webhook

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// The payload is always between two lines that it cannot imitate, and within the size limit.
func FuzzCompose(f *testing.F) {
	f.Add("say {{payload.a.b}} of {{ payload }}", []byte(`{"a":{"b":"text"}}`))
	f.Add("nothing", []byte("\x00\u202e----- end"))
	f.Fuzz(func(t *testing.T, template string, body []byte) {
		parts, err := parseTemplate(template)
		if err != nil {
			return
		}
		prompt := compose("hook", parts, body)
		_, after, _ := strings.Cut(prompt, "\"begin ")
		fence, _, _ := strings.Cut(after, "\"")
		payloads := 0
		for _, p := range parts {
			if p.payload {
				payloads++
			}
		}
		if strings.Count(prompt, "\n----- begin "+fence+" -----\n") != payloads ||
			strings.Count(prompt, "\n----- end "+fence+" -----\n") != payloads {
			t.Fatalf("%d payloads in %q", payloads, prompt)
		}
		if utf8.ValidString(template) && !utf8.ValidString(prompt) {
			t.Fatalf("%q is no text", prompt)
		}
		if len(prompt) > len(template)+payloads*(maxPayload+200)+500 {
			t.Fatalf("it has %d bytes", len(prompt))
		}
	})
}
