package codex

import (
	"encoding/json"
	"regexp"
	"strings"

	"ductor/cli"
)

// kindOf classifies an error of exec by its text, because exec has no error codes. The known texts are from version
// 0.169.
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

// hopeless reports whether retrying a request to the API is useless after this kind of failure.
func hopeless(kind cli.FailureKind) bool {
	return kind == cli.NotLoggedIn || kind == cli.Forbidden || kind == cli.UnknownModel
}

// stopOf returns the kind of failure if something stopped the model in the middle of an answer, or "". Codex reports a
// content filter like a broken stream.
func stopOf(message string) cli.FailureKind {
	switch {
	case strings.Contains(message, "reason: content_filter"):
		return cli.ModelRefused
	case strings.Contains(message, "reason: max_output_tokens"):
		return cli.AnswerCut
	}
	return ""
}

// Texts that Codex adds to the reason of a failure, such as the number of the retry and the URL of the API.
var (
	counter = regexp.MustCompile(`^Reconnecting\.\.\. \d+/\d+ \((.*)\)$`)
	waiting = regexp.MustCompile(`^Reconnecting\.\.\. `)
	address = regexp.MustCompile(`, url: [^\s)]+`)
	retried = regexp.MustCompile(`^exceeded retry limit, last status: `) // every retry has this text
	request = regexp.MustCompile(`,? request id: [\w-]+`)
	broken  = regexp.MustCompile(`^stream disconnected before completion(?:: Transport error: .*)?`)
)

// reasonOf returns the reason in an error text.
func reasonOf(message string) string {
	var body struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(message), &body) == nil && body.Error.Message != "" {
		message = body.Error.Message
	}
	message = counter.ReplaceAllString(message, "$1")
	message = waiting.ReplaceAllString(message, "")
	message = request.ReplaceAllString(address.ReplaceAllString(message, ""), "")
	switch stopOf(message) {
	case cli.ModelRefused:
		return "a content filter stopped the answer"
	case cli.AnswerCut: // the kind is the whole reason
		return ""
	}
	return cli.ShortLine(broken.ReplaceAllString(retried.ReplaceAllString(message, ""), "the connection broke"))
}
