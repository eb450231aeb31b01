package turn

import (
	"strings"
	"testing"

	"ductor/cli"
)

// Output of the real programs.
const (
	codexLogin = "\nWelcome to Codex [v\x1b[90m0.169.0\x1b[0m]\n\x1b[90mOpenAI's command-line coding agent\x1b[0m\n\n" +
		"Follow these steps to sign in with ChatGPT using device code authorization:\n\n" +
		"1. Open this link in your browser and sign in to your account\n   \x1b[94mhttps://auth.openai.com/codex/device\x1b[0m\n\n" +
		"2. Enter this one-time code \x1b[90m(expires in 15 minutes)\x1b[0m\n   \x1b[94mABCD-12345\x1b[0m\n\nSuccessfully logged in\n"
	copilotLogin = "To authenticate, visit https://github.com/login/device and enter code WXYZ-1234\nWaiting for authorization...\n"
)

func TestThePageAndTheCodeAreRead(t *testing.T) {
	for said, want := range map[string]cli.DeviceCode{
		codexLogin:   {Agent: "a", URL: "https://auth.openai.com/codex/device", Code: "ABCD-12345"},
		copilotLogin: {Agent: "a", URL: "https://github.com/login/device", Code: "WXYZ-1234"},
	} {
		var got []cli.DeviceCode
		last, shown := readCode(strings.NewReader(said), cli.DeviceCode{Agent: "a"}, func(d cli.DeviceCode) { got = append(got, d) })
		if !shown || len(got) != 1 || got[0] != want || last == "" {
			t.Errorf("read %+v, shown %v, last %q", got, shown, last)
		}
	}
	if last, shown := readCode(strings.NewReader("Error: no network\n"), cli.DeviceCode{}, func(cli.DeviceCode) {}); shown || last != "Error: no network" {
		t.Errorf("shown %v, last %q", shown, last)
	}
}
