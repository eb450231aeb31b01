package codex

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"ductor/cli"
)

// kindOf classifies an error of `codex exec` by its text, because there are no error codes. The known texts are from
// version 0.169.
func kindOf(message string) cli.FailureKind { return kindOfError(cli.APIError{Text: message}) }

func kindOfError(e cli.APIError) cli.FailureKind {
	switch stop := stopOf(e.Text); {
	case stop != "":
		return stop
	case cli.ContainsAny(e.Text, "no rollout found", "thread/resume failed", "thread not found"):
		return cli.ResumeFailed
	}
	return e.Kind()
}

// isPermanent reports whether a failed request to the API would fail again.
func isPermanent(kind cli.FailureKind) bool {
	return kind == cli.NotLoggedIn || kind == cli.Forbidden || kind == cli.UnknownModel
}

// stopOf returns the kind of failure if a content filter or a limit ended the model's answer, or else "". Codex reports
// such an answer as a broken stream.
func stopOf(message string) cli.FailureKind {
	switch {
	case strings.Contains(message, "reason: content_filter"):
		return cli.ModelRefused
	case strings.Contains(message, "reason: max_output_tokens"):
		return cli.AnswerCut
	}
	return ""
}

// Texts that Codex puts around the reason of a failure, such as the number of the retry and the URL of the API.
var (
	counter = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^Reconnecting\.\.\. \d+/\d+ \((.*)\)$`)
	})
	waiting = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^Reconnecting\.\.\. `) })
	address = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`, url: [^\s)]+`) })
	retried = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^exceeded retry limit, last status: `)
	})
	request = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`,? request id: [\w-]+`) })
	broken  = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^stream disconnected before completion(?:: Transport error: .*)?`)
	})
)

// reasonOf extracts the reason from the text of an error.
func reasonOf(message string) string {
	var body struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(message), &body) == nil && body.Error.Message != "" {
		message = body.Error.Message
	}
	message = counter().ReplaceAllString(message, "$1")
	message = waiting().ReplaceAllString(message, "")
	message = request().ReplaceAllString(address().ReplaceAllString(message, ""), "")
	switch stopOf(message) {
	case cli.ModelRefused:
		return "a content filter stopped the answer"
	case cli.AnswerCut: // the kind of failure needs no further explanation
		return ""
	}
	return cli.ShortLine(broken().ReplaceAllString(retried().ReplaceAllString(message, ""), "the connection broke"))
}
