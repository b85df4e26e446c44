// Package pages looks at the pages that Rayfit writes in a real browser.
package pages
