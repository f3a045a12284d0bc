// C++'s operators and exceptions.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct alignas(128) Wide {
    char bytes[300];
};

static int depth(int n) {
    std::string text(static_cast<size_t>(n) * 50, 'x');
    if (n == 0)
        throw std::runtime_error("thrown over " + std::to_string(text.size()));
    return depth(n - 1) + static_cast<int>(text.size());
}

static void work() {
    std::map<std::string, std::vector<int>> table;
    for (int i = 0; i < 3000; i++)
        table["key " + std::to_string(i * 7919 % 1000)].push_back(i);
    for (int i = 0; i < 100; i++) {
        try {
            depth(20);
            std::abort();
        } catch (const std::runtime_error &) {
        }
        auto wide = std::make_unique<Wide[]>(static_cast<size_t>(i) + 1);
        if (reinterpret_cast<uintptr_t>(wide.get()) % 128)
            std::abort();
    }
}

int main() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++)
        threads.emplace_back(work);
    for (auto &thread : threads)
        thread.join();
    volatile size_t much = SIZE_MAX / 4;
    if (new (std::nothrow) char[much])
        std::abort();
    try {
        char *volatile more = new char[much];
        delete[] more;
        std::abort();
    } catch (const std::bad_alloc &) {
    }
    std::puts("all right");
}
