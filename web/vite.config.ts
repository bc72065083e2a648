import { defineConfig } from 'vite'

// The page is embedded into the binary from where it is built to. All
// addresses in it are relative, so that it also works below a sub-path.
export default defineConfig({
  base: './',
  build: {
    outDir: '../internal/httpapi/page/built/app',
    emptyOutDir: true,
    assetsInlineLimit: 0, // the policy of the page knows no data: for scripts and styles
    modulePreload: { polyfill: false },
    target: 'es2022',
    chunkSizeWarningLimit: 600,
  },
  server: {
    proxy: Object.fromEntries(
      ['/buckets', '/collections', '/functions', '/health', '/ready', '/admin', '/metrics', '/?q='].map((path) => [path, 'http://127.0.0.1:8080']),
    ),
  },
})
