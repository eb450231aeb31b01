package telegram_test

import (
	"testing"

	"ductor/internal/testprogram"
)

func TestMain(m *testing.M) { testprogram.Main(m) }
