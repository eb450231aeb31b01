package acp

import (
	"encoding/json"
	"testing"
)

// This is the part of Qwen Code 0.24.4's answer about its models that ductor reads.
func TestWhichModelsReadPictures(t *testing.T) {
	const listed = `{"providers":[{"authType":"qwen-oauth","current":false,"models":[{"modelId":"coder-model(qwen-oauth)","modalities":{"image":true,"video":true},"isCurrent":false}]},` +
		`{"authType":"openai","current":true,"models":[`
	for name, c := range map[string]struct {
		models, model string
		want          imageSupport
	}{
		"words alone":                   {`{"modelId":"a(openai)","modalities":{},"isCurrent":true}`, "a(openai)", noImages},
		"pictures":                      {`{"modelId":"a(openai)","modalities":{"image":true},"isCurrent":true}`, "a(openai)", imagesRead},
		"the current one":               {`{"modelId":"a(openai)","modalities":{},"isCurrent":true}`, "", noImages},
		"not known":                     {`{"modelId":"$runtime|openai|a(openai)","isCurrent":true,"isRuntime":true}`, "$runtime|openai|a(openai)", maybeImages},
		"another reads them for it":     {`{"modelId":"a(openai)","modalities":{},"isCurrent":true},{"modelId":"b(openai)","modalities":{"image":true}}`, "a(openai)", imagesRead},
		"another one that is not known": {`{"modelId":"a(openai)","modalities":{},"isCurrent":true}`, "c(openai)", maybeImages},
	} {
		var m modelsRead
		if err := json.Unmarshal([]byte(listed+c.models+"]}]}"), &m); err != nil {
			t.Fatal(err)
		}
		if got := m.imageSupportOf(c.model); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
